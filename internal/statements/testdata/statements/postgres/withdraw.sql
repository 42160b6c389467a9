delete from "falldue_tasks" as t using pg_catalog.unnest((select $1::bigint[])) as s (task_id)
where t.id = s.task_id
-- binds: task_id[]
