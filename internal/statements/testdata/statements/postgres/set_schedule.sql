update "falldue_schedules" set paused = $1, paused_at = statement_timestamp(), paused_by = $2, paused_why = $3, next_at = (timestamptz 'epoch' + ($4::bigint)::float8 * interval '1 microsecond')
where name = $5 and paused = $6 and next_at = (timestamptz 'epoch' + ($7::bigint)::float8 * interval '1 microsecond')
-- binds: paused, paused_by, paused_why, next, name, was_paused, was_next
