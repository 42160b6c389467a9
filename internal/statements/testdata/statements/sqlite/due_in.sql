select id, cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer), metadata from "falldue_tasks"
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= ? and updated_at <= (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000
order by updated_at limit ?
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, limit
