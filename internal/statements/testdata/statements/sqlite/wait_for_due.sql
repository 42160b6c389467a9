select t.name, t.hash, cast(t.next_at as integer), t.last_task from "falldue_schedules" t
where (t.name) in (values (?), (?)) and t.paused = 0 and t.next_at <= (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000
-- binds: name[0], name[1]
