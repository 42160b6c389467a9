update (select fence as permit, fence as task_id, fence as task_fence, fence as was, fence as wait from `falldue_tasks` where false union all values (?, ?, ?, ?, ?), (?, ?, ?, ?, ?)) as s straight_join `falldue_permits` t on t.id = s.permit and t.token = ?
set t.task_id = s.task_id, t.fence = s.task_fence, t.token = s.was, t.taken_until = date_add(t.taken_until, interval (-s.wait) microsecond)
-- binds: permit[0], task_id[0], task_fence[0], was[0], wait[0], permit[1], task_id[1], task_fence[1], was[1], wait[1], token
