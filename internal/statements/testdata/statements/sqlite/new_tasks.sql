select id, queue, state, task_key, priority, kind, policy, attempts, cast(updated_at as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer) from "falldue_tasks"
where id > ?
order by id limit ?
-- binds: after, limit
