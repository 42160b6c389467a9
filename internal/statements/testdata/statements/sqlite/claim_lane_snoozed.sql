select 1, id, fence, max_attempts, cast(updated_at as integer), case when attempts <> 0 then cast(first_attempted_at as integer) end, case when created_at <> updated_at then cast(created_at as integer) end, cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer), nullif(rtrim(claimed_by), ''), payload, metadata from "falldue_tasks"
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= ? and updated_at <= (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 and typeof(fence) = 'integer' and typeof(max_attempts) = 'integer'
order by updated_at limit ?
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, limit
