delete t from `falldue_attempts` t where (t.task_id, t.fence) in ((?, ?), (?, ?))
-- binds: task_id[0], task_fence[0], task_id[1], task_fence[1]
