select task_id, waiter, outcome from "falldue_edges"
where waiter = $1 and task_id > $2 order by task_id limit $3
-- binds: waiter, after, limit
