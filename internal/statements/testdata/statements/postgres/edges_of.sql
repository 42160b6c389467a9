select t.task_id, t.waiter, t.outcome from "falldue_edges" t where t.waiter = any(array(select s.task_id from pg_catalog.unnest($1::bigint[]) as s (task_id))) limit $2
-- binds: task_id[], limit
