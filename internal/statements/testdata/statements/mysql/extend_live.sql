update `falldue_tasks` as t set updated_at = date_add(utc_timestamp(6), interval (?) microsecond)
where (t.id, t.fence) in ((?, ?), (?, ?)) and t.claimed_by = ? and t.updated_at > utc_timestamp(6)
-- binds: lease, task_id[0], task_fence[0], task_id[1], task_fence[1], worker
