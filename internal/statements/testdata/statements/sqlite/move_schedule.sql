update "falldue_schedules" set next_at = ?
where name = ? and hash = ? and last_task = ? and paused = 0 and next_at = ? and next_at <= (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000
-- binds: next, name, hash, last_task, was_next
