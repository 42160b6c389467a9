update (select fence as task_id, fence as task_fence, fence as wait from `falldue_tasks` where false union all values (?, ?, ?), (?, ?, ?)) as s straight_join `falldue_tasks` t on t.id = s.task_id and t.fence = s.task_fence and t.state in ('done', 'dead', 'cancelled')
set fence = case when t.state = 'done' then least(t.fence, 9223372036854775806) + 1 else t.fence end, state = 'open', attempts = 0, updated_at = date_add(utc_timestamp(6), interval (s.wait) microsecond), result = null
-- binds: task_id[0], task_fence[0], wait[0], task_id[1], task_fence[1], wait[1]
