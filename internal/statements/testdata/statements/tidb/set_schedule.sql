update `falldue_schedules` set paused = ?, paused_at = utc_timestamp(6), paused_by = ?, paused_why = ?, next_at = date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond)
where name = ? and paused = ? and next_at = date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond)
-- binds: paused, paused_by, paused_why, next, name, was_paused, was_next
