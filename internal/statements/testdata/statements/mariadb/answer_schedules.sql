update `falldue_schedules` as t set asked_at = date_add(cast('1970-01-01' as datetime(6)), interval (0) microsecond) where (t.name) in ((?), (?))
-- binds: name[0], name[1]
