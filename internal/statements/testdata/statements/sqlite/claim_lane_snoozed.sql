select 1, id, fence, max_attempts, cast(updated_at as integer), cast(case when attempts = 0 then (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 else first_attempted_at end as integer), cast(created_at as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer), coalesce(rtrim(claimed_by), ''), payload from "falldue_tasks"
where queue = ? and state = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= ? and updated_at <= (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 and typeof(fence) = 'integer' and typeof(max_attempts) = 'integer'
order by updated_at limit ?
-- binds: queue, state, priority, kind, policy, attempts, since, limit
