select distinct t.waiter from pg_catalog.unnest($1::bigint[]) as s (task_id) join "falldue_edges" t on t.task_id = s.task_id
-- binds: task_id[]
