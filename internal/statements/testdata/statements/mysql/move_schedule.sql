update `falldue_schedules` set next_at = date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond)
where name = ? and hash = ? and last_task = ? and paused = 0 and next_at = date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) and next_at <= utc_timestamp(6)
-- binds: next, name, hash, last_task, was_next
