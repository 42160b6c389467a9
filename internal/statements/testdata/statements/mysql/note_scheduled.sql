update `falldue_schedules` set last_task = ?, last_at = utc_timestamp(6) where name = ?
-- binds: task, name
