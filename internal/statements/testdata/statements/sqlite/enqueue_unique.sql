insert into "falldue_tasks" (unique_key, queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload) select unique_key, queue, kind, policy, task_key, priority, max_attempts, coalesce(at, ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (delay))), (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, payload
from (select column1 as unique_key, column2 as queue, column3 as kind, column4 as policy, column5 as task_key, column6 as priority, column7 as max_attempts, column8 as at, column9 as delay, column10 as payload from (values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?, ?, ?, ?))) as s
where true
returning id
-- binds: unique_key[0], queue[0], kind[0], policy[0], task_key[0], priority[0], max_attempts[0], at[0], delay[0], payload[0], unique_key[1], queue[1], kind[1], policy[1], task_key[1], priority[1], max_attempts[1], at[1], delay[1], payload[1]
