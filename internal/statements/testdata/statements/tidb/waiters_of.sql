select distinct t.waiter from `falldue_edges` t where (t.task_id) in ((?), (?))
-- binds: task_id[0], task_id[1]
