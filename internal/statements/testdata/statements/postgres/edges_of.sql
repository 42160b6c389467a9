select task_id, waiter, outcome from "falldue_edges" where waiter = $1 limit $2
-- binds: waiter, limit
