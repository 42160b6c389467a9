update "falldue_tasks" as t set state = s.to_state, attempts = t.attempts + s.more, claimed_by = '', updated_at = ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (s.wait)), last_error = coalesce(s.failure, t.last_error), result = s.answer
from (select * from (select value ->> 0 as task_id, value ->> 1 as task_fence, value ->> 2 as to_state, value ->> 3 as more, value ->> 4 as wait, value ->> 5 as failure, value ->> 6 as answer from json_each(?)) as s limit -1) as s
where t.id = s.task_id and t.fence = s.task_fence and +t.id in (select * from (select value ->> 0 as task_id from json_each(?)) as s) and t.claimed_by = ?
returning id
