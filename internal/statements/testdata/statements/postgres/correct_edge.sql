update "falldue_edges" set outcome = $1::text where task_id = $2 and waiter = $3 and outcome = $4
-- binds: outcome, task_id, waiter, was
