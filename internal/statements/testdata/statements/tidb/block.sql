update `falldue_tasks` as t set state = 'blocked'
where (t.id, t.fence) in ((?, ?), (?, ?))
-- binds: task_id[0], task_fence[0], task_id[1], task_fence[1]
