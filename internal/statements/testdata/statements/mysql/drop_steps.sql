delete t from `falldue_steps` t where (t.task_id) in ((?), (?))
-- binds: task_id[0], task_id[1]
