select distinct t.waiter from "falldue_edges" t where t.task_id = any(array(select s.task_id from pg_catalog.unnest((select $1::bigint[])) as s (task_id)))
-- binds: task_id[]
