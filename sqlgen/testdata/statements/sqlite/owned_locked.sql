select t.id from (select value ->> 0 as task_id, value ->> 1 as task_fence from json_each(?)) as s join "falldue_tasks" t on t.id = s.task_id and t.fence = s.task_fence and t.claimed_by = ?
