select task_id from `falldue_edges` where waiter = ? and task_id >= ? and outcome = ''
order by task_id limit 1
-- binds: waiter, since
