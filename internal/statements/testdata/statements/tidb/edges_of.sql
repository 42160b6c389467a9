select task_id, waiter, outcome from `falldue_edges` where waiter = ? limit ?
-- binds: waiter, limit
