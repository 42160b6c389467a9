with recursive found as ((select (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) as lane, queue, state, task_key, priority, kind, policy, attempts, updated_at from "falldue_tasks"
where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > $1::text || ' open' and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) < $1::text || '!'
order by (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)), updated_at limit 1)
union all
select next.* from found cross join lateral (select (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) as lane, queue, state, task_key, priority, kind, policy, attempts, updated_at from "falldue_tasks"
where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > found.lane and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) < $1::text || '!'
order by (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)), updated_at limit 1) next)
select state, task_key, priority, kind, policy, attempts, (date_part('epoch'::text, least(greatest(updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint
from found where queue = $1::text and state in ('open', 'snoozed')
-- binds: queue
