select e.task_id, e.waiter, e.outcome, case when k.id is null then 'deleted' when k.state in ('done', 'dead', 'cancelled') then k.state else '' end, coalesce(w.state, '')
from (select task_id, waiter, outcome from `falldue_edges` where task_id >= ? and (task_id > ? or waiter > ?) order by task_id, waiter limit ?) e
left join `falldue_tasks` k on k.id = e.task_id left join `falldue_tasks` w on w.id = e.waiter
order by e.task_id, e.waiter
-- binds: task_id, task_id, waiter, limit
