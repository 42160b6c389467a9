select f.queue, f.state, f.task_key, f.priority, f.kind, f.policy, f.attempts, (date_part('epoch'::text, least(greatest(f.updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from unnest((select $1::text[]), (select $2::text[]), (select $3::text[])) as s (queue, after, ending) cross join lateral (
with recursive found as ((select (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) as lane, queue, state, task_key, priority, kind, policy, attempts, updated_at from "falldue_tasks"
where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > s.after and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) < s.ending
order by (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)), updated_at limit 1)
union all
select next.* from found cross join lateral (select (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) as lane, queue, state, task_key, priority, kind, policy, attempts, updated_at from "falldue_tasks"
where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > found.lane and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) < s.ending
order by (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)), updated_at limit 1) next)
select * from found where queue = s.queue and state in ('open', 'snoozed')) f
limit $4::bigint
-- binds: queue[], after[], ending[], page
