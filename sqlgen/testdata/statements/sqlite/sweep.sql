with recursive lane as (select t.id, t.state, t.priority, t.kind, t.policy, t.attempts, t.updated_at from "falldue_tasks" t where t.id = (select id from "falldue_tasks"
where queue = ? and state >= 'open'
order by state, priority, kind, policy, attempts, updated_at limit 1)
union all
select t.id, t.state, t.priority, t.kind, t.policy, t.attempts, t.updated_at from lane l join "falldue_tasks" t on t.id = (select id from "falldue_tasks"
where queue = ? and (state, priority, kind, policy, attempts) > (+l.state, +l.priority, +l.kind, +l.policy, +l.attempts)
order by state, priority, kind, policy, attempts, updated_at limit 1)) select state, priority, kind, policy, attempts, cast(updated_at as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer)
from lane where state in ('open', 'snoozed')
