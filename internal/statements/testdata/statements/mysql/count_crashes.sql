update `falldue_steps` as t set crashes = t.crashes + 1 where (t.task_id, t.fence) in ((?, ?), (?, ?)) and t.result is null
-- binds: task_id[0], task_fence[0], task_id[1], task_fence[1]
