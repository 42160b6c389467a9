select e.task_id, e.waiter, e.outcome from `falldue_edges` e
where e.task_id = ? and e.outcome = '' and exists (select 1 from `falldue_flows` f where f.task_id = e.waiter) for update
-- binds: id
