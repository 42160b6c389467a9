update "falldue_schedules" set last_task = ?, last_at = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 where name = ?
-- binds: task, name
