show index from `falldue_tasks`
-- binds: 
