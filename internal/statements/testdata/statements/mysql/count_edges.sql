select outcome, count(*) from `falldue_edges` where waiter = ? group by outcome
-- binds: waiter
