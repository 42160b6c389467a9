select t.task_id, t.name from `falldue_steps` t where (t.task_id, t.fence) in ((?, ?), (?, ?)) and t.result is null order by t.task_id, t.n
-- binds: task_id[0], task_fence[0], task_id[1], task_fence[1]
