insert into "falldue_tasks" (queue, kind, policy, priority, max_attempts, updated_at, created_at, payload) select queue, kind, policy, priority, max_attempts, coalesce(at, ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (delay))), (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, payload
from (select value ->> 0 as queue, value ->> 1 as kind, value ->> 2 as policy, value ->> 3 as priority, value ->> 4 as max_attempts, value ->> 5 as at, value ->> 6 as delay, value ->> 7 as payload from json_each(?)) as s
where true
returning id
