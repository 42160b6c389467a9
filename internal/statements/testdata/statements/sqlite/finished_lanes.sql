with recursive found as (select t.queue, t.state, t.task_key, t.priority, t.kind, t.policy, t.attempts, t.updated_at from (select column1 as queue, column2 as state, column3 as task_key, column4 as priority, column5 as kind, column6 as policy, column7 as attempts from (values (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?))) as s join "falldue_tasks" t on t.id = (select id from "falldue_tasks"
where queue = +s.queue and state = ? and (task_key, priority, kind, policy, attempts, updated_at) > (+s.task_key, +s.priority, +s.kind, +s.policy, +s.attempts, 250000000000000000) and (+task_key, priority, kind, policy, attempts) > (+s.task_key, +s.priority, +s.kind, +s.policy, +s.attempts)
order by state, task_key, priority, kind, policy, attempts, updated_at limit 1)
union all
select t.queue, t.state, t.task_key, t.priority, t.kind, t.policy, t.attempts, t.updated_at from found f join "falldue_tasks" t on t.id = (select id from "falldue_tasks"
where queue = +f.queue and state = ? and (task_key, priority, kind, policy, attempts, updated_at) > (+f.task_key, +f.priority, +f.kind, +f.policy, +f.attempts, 250000000000000000) and (+task_key, priority, kind, policy, attempts) > (+f.task_key, +f.priority, +f.kind, +f.policy, +f.attempts)
order by state, task_key, priority, kind, policy, attempts, updated_at limit 1)
order by 1, 2, 3, 4, 5, 6, 7) select queue, state, task_key, priority, kind, policy, attempts, cast(updated_at as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer)
from found where state = ? limit ?
-- binds: queue[0], state[0], task_key[0], priority[0], kind[0], policy[0], attempts[0], queue[1], state[1], task_key[1], priority[1], kind[1], policy[1], attempts[1], state, state, state, page
