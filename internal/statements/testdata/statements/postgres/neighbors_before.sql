select e.task_id, e.waiter, e.outcome, coalesce(k.kind, ''), coalesce(k.state, '') from pg_catalog.unnest((select $1::bigint[])) as s (task_id) cross join lateral ( select t.task_id, t.waiter, t.outcome from "falldue_edges" t where t.waiter = s.task_id order by t.outcome, t.task_id limit $2) e
left join "falldue_tasks" k on k.id = e.task_id limit $2
-- binds: task_id[], limit
