with recursive lane as (select t.id, t.state, t.priority, t.kind, t.policy, t.attempts, t.updated_at from "falldue_tasks" t where t.id = (select id from "falldue_tasks"
where queue = $1 and state >= 'open'
order by state, priority, kind, policy, attempts, updated_at limit 1)
union all
select t.id, t.state, t.priority, t.kind, t.policy, t.attempts, t.updated_at from lane l join "falldue_tasks" t on t.id = (select id from "falldue_tasks"
where queue = $1 and (state, priority, kind, policy, attempts) > (l.state, l.priority, l.kind, l.policy, l.attempts)
order by state, priority, kind, policy, attempts, updated_at limit 1)) select state, priority, kind, policy, attempts, (date_part('epoch', least(greatest(updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, (date_part('epoch', least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint
from lane where state in ('open', 'snoozed')
