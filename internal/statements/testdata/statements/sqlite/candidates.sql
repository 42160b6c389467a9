select id, fence, cast(updated_at as integer) from "falldue_tasks"
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= ? and updated_at <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(case when ? between 1 and 2147483647 then cast(floor(55020.0 * atan(power(cast(? as real), 3.0) / 15.0) * 1000000.0 + 0.5) as integer) when ? > 2147483647 then 86425213900 else 0 end))) and typeof(fence) = 'integer' and typeof(max_attempts) = 'integer' and (updated_at > ? or id > ?)
order by updated_at, id limit ?
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, attempts, attempts, attempts, since, after, limit
