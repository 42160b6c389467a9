insert into "falldue_tasks" (queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload) select queue, kind, policy, task_key, priority, max_attempts, coalesce(at, ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (delay))), (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, payload
from (select column1 as queue, column2 as kind, column3 as policy, column4 as task_key, column5 as priority, column6 as max_attempts, column7 as at, column8 as delay, column9 as payload from (values (?, ?, ?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?, ?, ?))) as s
where true
returning id
-- binds: queue[0], kind[0], policy[0], task_key[0], priority[0], max_attempts[0], at[0], delay[0], payload[0], queue[1], kind[1], policy[1], task_key[1], priority[1], max_attempts[1], at[1], delay[1], payload[1]
