update "falldue_tasks" as t set fence = case when t.state = 'done' then min(t.fence, 9223372036854775806) + 1 else t.fence end, state = 'open', attempts = 0, updated_at = case when ? = 1 then t.created_at else ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (s.wait)) end, result = null
from (select * from (select column1 as task_id, column2 as task_fence, column3 as wait from (values (?, ?, ?), (?, ?, ?))) as s limit -1) as s
where t.id = s.task_id and t.fence = s.task_fence and +t.id in (select * from (select column1 as task_id from (values (?), (?))) as s) and t.state in ('done', 'dead', 'cancelled')
-- binds: in_place, task_id[0], task_fence[0], wait[0], task_id[1], task_fence[1], wait[1], task_id[0], task_id[1]
