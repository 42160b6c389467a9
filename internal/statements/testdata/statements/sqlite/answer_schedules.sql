update "falldue_schedules" as t set asked_at = 0 where (t.name) in (values (?), (?))
-- binds: name[0], name[1]
