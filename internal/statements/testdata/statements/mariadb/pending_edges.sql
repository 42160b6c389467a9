select task_id, waiter, outcome from `falldue_edges` where task_id = ? and outcome = '' for update
-- binds: id
