select id, cast(updated_at as integer) from "falldue_tasks"
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= ? and updated_at <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?))) and updated_at <= ?
order by updated_at limit ? offset ?
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, keep, upto, limit, skip
