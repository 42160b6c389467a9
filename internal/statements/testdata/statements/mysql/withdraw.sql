delete t from `falldue_tasks` t where (t.id) in ((?), (?))
-- binds: task_id[0], task_id[1]
