select task_id from "falldue_edges" where waiter = $1 and task_id >= $2 and outcome = ''
order by task_id limit 1
-- binds: waiter, since
