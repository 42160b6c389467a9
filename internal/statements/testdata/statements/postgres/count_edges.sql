select outcome, count(*) from "falldue_edges" where waiter = $1 group by outcome
-- binds: waiter
