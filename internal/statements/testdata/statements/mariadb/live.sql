select t.id from `falldue_tasks` t where (t.id, t.fence) in ((?, ?), (?, ?)) and t.claimed_by = ? and t.updated_at > utc_timestamp(6)
-- binds: task_id[0], task_fence[0], task_id[1], task_fence[1], worker
