delete t from `falldue_edges` t where (t.task_id, t.waiter) in ((?, ?), (?, ?))
-- binds: task_id[0], waiter[0], task_id[1], waiter[1]
