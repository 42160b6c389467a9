delete from "falldue_attempts" as t using pg_catalog.unnest((select $1::bigint[])) as s (task_id)
where t.task_id = s.task_id
-- binds: task_id[]
