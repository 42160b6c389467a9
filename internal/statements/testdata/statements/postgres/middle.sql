select t.task_id, t.fence from pg_catalog.unnest((select $1::bigint[])) as s (task_id) join "falldue_attempts" t on t.task_id = s.task_id
where t.fence >= (select a.fence from "falldue_attempts" a where a.task_id = s.task_id order by a.fence limit 1 offset $2)
and t.fence <= (select a.fence from "falldue_attempts" a where a.task_id = s.task_id order by a.fence desc limit 1 offset $3)
-- binds: task_id[], first, last
