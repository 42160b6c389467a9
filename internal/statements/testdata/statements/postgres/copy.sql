copy "falldue_tasks" (id, queue, kind, policy, priority, max_attempts, updated_at, payload) from stdin
-- binds: 
