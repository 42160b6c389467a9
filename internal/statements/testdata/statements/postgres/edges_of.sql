select e.task_id, e.waiter, e.outcome from pg_catalog.unnest((select $1::bigint[])) as s (task_id) cross join lateral ( select t.task_id, t.waiter, t.outcome from "falldue_edges" t where t.waiter = s.task_id and t.outcome >= '' order by t.outcome, t.task_id limit $2) e
where not exists (select 1 from "falldue_tasks" k where k.id = s.task_id) limit $2
-- binds: task_id[], limit
