select t.task_id, t.fence from (select column1 as task_id from (values (?), (?))) as s join "falldue_attempts" t on t.task_id = s.task_id
where t.fence >= (select a.fence from "falldue_attempts" a where a.task_id = s.task_id order by a.fence limit 1 offset ?)
and t.fence <= (select a.fence from "falldue_attempts" a where a.task_id = s.task_id order by a.fence desc limit 1 offset ?)
-- binds: task_id[0], task_id[1], first, last
