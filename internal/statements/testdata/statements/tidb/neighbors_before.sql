select t.task_id, t.waiter, t.outcome, coalesce(k.kind, ''), coalesce(k.state, '')
from `falldue_edges` t left join `falldue_tasks` k on k.id = t.task_id
where (t.waiter) in ((?), (?)) limit ?
-- binds: task_id[0], task_id[1], limit
