update `falldue_tasks` as t set fence = least(t.fence, 9223372036854775806) + 1, state = 'cancelled', claimed_by = '', updated_at = utc_timestamp(6)
where (t.id, t.fence) in ((?, ?), (?, ?)) and t.state in ('blocked', 'open', 'snoozed')
-- binds: task_id[0], task_fence[0], task_id[1], task_fence[1]
