copy "falldue_tasks" (id, queue, kind, payload) from stdin
-- binds: 
