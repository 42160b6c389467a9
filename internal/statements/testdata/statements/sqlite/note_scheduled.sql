update "falldue_schedules" as t set last_task = (select s.task from (select column1 as name, column2 as task from (values (?, ?), (?, ?))) as s where s.name = t.name), last_at = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 where (t.name) in (values (?), (?))
-- binds: name[0], task[0], name[1], task[1], name[0], name[1]
