select t.id, t.queue, t.kind, t.task_key, t.state, t.attempts, t.fence, cast(t.updated_at as integer), coalesce(rtrim(t.claimed_by), ''), coalesce(substr(t.last_error, 1, 500), ''), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer) from "falldue_tasks" t
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ?
order by updated_at desc limit ?
-- binds: queue, state, task_key, priority, kind, policy, attempts, limit
