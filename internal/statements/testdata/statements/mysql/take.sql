update `falldue_tasks` as t set first_attempted_at = case when t.attempts = 0 then utc_timestamp(6) else greatest(t.first_attempted_at, date_add(cast('1970-01-01' as datetime(6)), interval (0) microsecond)) end, attempted_at = utc_timestamp(6), attempts = case when t.attempts < ? then t.attempts + 1 else t.attempts end, fence = least(t.fence, 9223372036854775806) + 1, state = ?, updated_at = date_add(utc_timestamp(6), interval (?) microsecond), claimed_by = ?
where (t.id, t.fence) in ((?, ?), (?, ?))
-- binds: most, running, lease, worker, task_id[0], task_fence[0], task_id[1], task_fence[1]
