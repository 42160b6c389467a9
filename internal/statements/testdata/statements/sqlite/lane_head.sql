select state, task_key, priority, kind, policy, attempts, cast(updated_at as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer) from "falldue_tasks"
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= ?
order by updated_at limit 1
-- binds: queue, state, task_key, priority, kind, policy, attempts, since
