update "falldue_permits" as t set task_id = s.task_id, fence = s.task_fence, token = s.was, taken_until = (t.taken_until + (-s.wait))
from (select * from (select column1 as permit, column2 as task_id, column3 as task_fence, column4 as was, column5 as wait from (values (?, ?, ?, ?, ?), (?, ?, ?, ?, ?))) as s limit -1) as s
where t.id = s.permit and t.token = ?
-- binds: permit[0], task_id[0], task_fence[0], was[0], wait[0], permit[1], task_id[1], task_fence[1], was[1], wait[1], token
