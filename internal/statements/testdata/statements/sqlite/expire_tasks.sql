update "falldue_tasks" as t set fence = min(t.fence, 9223372036854775806) + 1, state = 'cancelled', updated_at = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, last_error = ?
where (t.id, t.fence) in (values (?, ?), (?, ?)) and t.state = 'open' and t.attempts = 0 and t.claimed_by = ''
-- binds: error, task_id[0], task_fence[0], task_id[1], task_fence[1]
