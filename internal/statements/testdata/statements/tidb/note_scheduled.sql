update `falldue_schedules` as t set last_task = (select s.task from (select cast(? as char) as name, cast(? as signed) as task union all select cast(? as char), cast(? as signed)) as s where s.name = t.name), last_at = utc_timestamp(6) where (t.name) in ((?), (?))
-- binds: name[0], task[0], name[1], task[1], name[0], name[1]
