update `falldue_tasks` as t set state = ?, attempts = t.attempts + ?, claimed_by = '', updated_at = date_add(utc_timestamp(6), interval (?) microsecond), last_error = coalesce(?, t.last_error), result = ?
where (t.id, t.fence) in ((?, ?), (?, ?)) and t.claimed_by = ?
-- binds: to_state, more, wait, failure, answer, task_id[0], task_fence[0], task_id[1], task_fence[1], worker
