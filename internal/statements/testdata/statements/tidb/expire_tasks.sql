update `falldue_tasks` as t set fence = least(t.fence, 9223372036854775806) + 1, state = 'cancelled', updated_at = utc_timestamp(6), last_error = ?
where (t.id, t.fence) in ((?, ?), (?, ?)) and t.state = 'open' and t.attempts = 0 and t.claimed_by = ''
-- binds: error, task_id[0], task_fence[0], task_id[1], task_fence[1]
