update "falldue_schedules" set next_at = (timestamptz 'epoch' + ($1::bigint)::float8 * interval '1 microsecond')
where name = $2 and hash = $3 and last_task = $4 and paused = 0 and next_at = (timestamptz 'epoch' + ($5::bigint)::float8 * interval '1 microsecond') and next_at <= statement_timestamp()
-- binds: next, name, hash, last_task, was_next
