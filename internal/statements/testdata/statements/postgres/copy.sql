copy "falldue_tasks" (id, queue, kind, policy, task_key, priority, max_attempts, updated_at, payload) from stdin
-- binds: 
