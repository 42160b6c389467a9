delete from `falldue_edges` where waiter = ?
-- binds: waiter
