update "falldue_tasks" as t set state = ?, attempts = t.attempts + ?, claimed_by = '', updated_at = ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (?)), last_error = coalesce(?, t.last_error), result = ?
where (t.id, t.fence) in (values (?, ?), (?, ?)) and t.claimed_by = ?
returning id
-- binds: to_state, more, wait, failure, answer, task_id[0], task_fence[0], task_id[1], task_fence[1], worker
