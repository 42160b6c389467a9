select t.id, t.task_id, t.fence from `falldue_permits` t where (t.task_id) in ((?), (?))
-- binds: task_id[0], task_id[1]
