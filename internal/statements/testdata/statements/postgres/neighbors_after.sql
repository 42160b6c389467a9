select t.task_id, t.waiter, t.outcome, coalesce(k.kind, ''), coalesce(k.state, '')
from "falldue_edges" t left join "falldue_tasks" k on k.id = t.waiter
where t.task_id = any(array(select s.task_id from pg_catalog.unnest($1::bigint[]) as s (task_id))) limit $2
-- binds: task_id[], limit
