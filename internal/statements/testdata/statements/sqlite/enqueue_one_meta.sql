insert into "falldue_tasks" (queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload, metadata) values (?, ?, ?, ?, ?, ?, coalesce(?, ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (?))), (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, ?, ?)
returning id
-- binds: queue, kind, policy, task_key, priority, max_attempts, at, delay, payload, metadata
