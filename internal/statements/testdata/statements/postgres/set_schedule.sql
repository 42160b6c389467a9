update "falldue_schedules" set paused = $1, next_at = (timestamptz 'epoch' + ($2::bigint)::float8 * interval '1 microsecond')
where name = $3 and paused = $4 and next_at = (timestamptz 'epoch' + ($5::bigint)::float8 * interval '1 microsecond')
-- binds: paused, next, name, was_paused, was_next
