copy "falldue_tasks" (id, queue, kind, payload, meta) from stdin
-- binds: 
