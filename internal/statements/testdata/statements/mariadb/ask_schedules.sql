update `falldue_schedules` as t set asked_at = utc_timestamp(6) where (t.name) in ((?), (?)) and t.asked_at = date_add(cast('1970-01-01' as datetime(6)), interval (0) microsecond)
-- binds: name[0], name[1]
