update "falldue_permits" as t set task_id = s.task_id, fence = s.task_fence, takes = s.takes + 1, taken_until = (max(t.taken_until, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000) + (s.wait))
from (select * from (select column1 as permit, column2 as task_id, column3 as task_fence, column4 as takes, column5 as wait from (values (?, ?, ?, ?, ?), (?, ?, ?, ?, ?))) as s limit -1) as s
where t.id = s.permit and t.takes = s.takes
returning id
-- binds: permit[0], task_id[0], task_fence[0], takes[0], wait[0], permit[1], task_id[1], task_fence[1], takes[1], wait[1]
