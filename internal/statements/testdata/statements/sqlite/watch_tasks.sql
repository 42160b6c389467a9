select t.id, t.queue, t.kind, t.task_key, t.state, t.attempts, t.fence, cast(t.updated_at as integer), coalesce(rtrim(t.claimed_by), ''), coalesce(substr(t.last_error, 1, 500), ''), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer) from "falldue_tasks" t where (t.id) in (values (?), (?))
-- binds: task_id[0], task_id[1]
