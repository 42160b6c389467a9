select task_id from "falldue_edges"
where waiter = $1 and outcome = $2 and task_id > $3 order by task_id limit $4
-- binds: waiter, outcome, after, limit
