update "falldue_tasks" as t set state = s.to_state, attempts = t.attempts + s.more, claimed_by = '', updated_at = ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (s.wait)), last_error = coalesce(s.failure, t.last_error), result = s.answer
from (select * from (select column1 as task_id, column2 as task_fence, column3 as to_state, column4 as more, column5 as wait, column6 as failure, column7 as answer from (values (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?))) as s limit -1) as s
where t.id = s.task_id and t.fence = s.task_fence and +t.id in (select * from (select column1 as task_id from (values (?), (?))) as s) and t.claimed_by = ?
returning id
-- binds: task_id[0], task_fence[0], to_state[0], more[0], wait[0], failure[0], answer[0], task_id[1], task_fence[1], to_state[1], more[1], wait[1], failure[1], answer[1], task_id[0], task_id[1], worker
