update `falldue_edges` set outcome = ? where task_id = ? and waiter = ? and outcome = ?
-- binds: outcome, task_id, waiter, was
