delete from "falldue_tasks" as t where (t.id, t.fence) in (select * from (select value ->> 0 as task_id, value ->> 1 as task_fence from json_each(?)) as s) and t.claimed_by = ?
returning id
