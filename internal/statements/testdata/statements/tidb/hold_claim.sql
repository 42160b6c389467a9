select id from `falldue_tasks` where id = ? and fence = ? and claimed_by = ? for update
-- binds: task_id, task_fence, worker
