delete from "falldue_edges" where waiter = $1
-- binds: waiter
