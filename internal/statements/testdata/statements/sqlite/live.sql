select t.id from "falldue_tasks" t where (t.id, t.fence) in (values (?, ?), (?, ?)) and t.claimed_by = ? and t.updated_at > (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000
-- binds: task_id[0], task_fence[0], task_id[1], task_fence[1], worker
