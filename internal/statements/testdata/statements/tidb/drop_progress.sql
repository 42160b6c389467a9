delete t from `falldue_progress` t where (t.task_id) in ((?), (?))
-- binds: task_id[0], task_id[1]
