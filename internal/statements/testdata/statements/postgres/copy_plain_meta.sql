copy "falldue_tasks" (id, queue, kind, payload, metadata) from stdin
-- binds: 
