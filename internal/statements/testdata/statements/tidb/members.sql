select task_id from `falldue_edges`
where waiter = ? and outcome = ? and task_id > ? order by task_id limit ?
-- binds: waiter, outcome, after, limit
