select e.task_id, e.waiter, case when k.id is null then 'deleted' when k.state in ('done', 'dead', 'cancelled') then k.state else '' end as truth from `falldue_edges` e left join `falldue_tasks` k on k.id = e.task_id
where e.waiter = ? and e.task_id > ? and e.outcome <> 'done' and e.outcome <> case when k.id is null then 'deleted' when k.state in ('done', 'dead', 'cancelled') then k.state else '' end
order by e.task_id limit ?
-- binds: waiter, after, limit
