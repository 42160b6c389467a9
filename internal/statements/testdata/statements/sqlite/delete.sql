delete from "falldue_tasks" as t where (t.id, t.fence) in (values (?, ?), (?, ?)) and t.claimed_by = ?
returning id
-- binds: task_id[0], task_fence[0], task_id[1], task_fence[1], worker
