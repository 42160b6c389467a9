select id from "falldue_tasks" where id = ? and fence = ? and claimed_by = ?
-- binds: task_id, task_fence, worker
