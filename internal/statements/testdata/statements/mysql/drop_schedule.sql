delete from `falldue_schedules` where name = ?
-- binds: name
