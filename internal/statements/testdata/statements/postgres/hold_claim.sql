select id from "falldue_tasks" where id = $1 and fence = $2 and claimed_by = $3 for update
-- binds: task_id, task_fence, worker
