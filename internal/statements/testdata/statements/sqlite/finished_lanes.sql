with recursive found as (select t.state, t.task_key, t.priority, t.kind, t.policy, t.attempts, t.updated_at from "falldue_tasks" t where t.id = (select id from "falldue_tasks"
where queue = ? and state = ?
order by state, task_key, priority, kind, policy, attempts, updated_at limit 1)
union all
select t.state, t.task_key, t.priority, t.kind, t.policy, t.attempts, t.updated_at from found f join "falldue_tasks" t on t.id = (select id from "falldue_tasks"
where queue = ? and state = ? and (task_key, priority, kind, policy, attempts, updated_at) > (+f.task_key, +f.priority, +f.kind, +f.policy, +f.attempts, 250000000000000000) and (+task_key, priority, kind, policy, attempts) > (+f.task_key, +f.priority, +f.kind, +f.policy, +f.attempts)
order by state, task_key, priority, kind, policy, attempts, updated_at limit 1)) select state, task_key, priority, kind, policy, attempts, cast(updated_at as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer)
from found where state = ?
-- binds: queue, state, queue, state, state
