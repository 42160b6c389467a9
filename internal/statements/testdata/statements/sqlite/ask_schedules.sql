update "falldue_schedules" as t set asked_at = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 where (t.name) in (values (?), (?)) and t.asked_at = 0
-- binds: name[0], name[1]
