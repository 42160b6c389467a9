with recursive found as ((select (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) as lane, queue, state, task_key, priority, kind, policy, attempts from "falldue_tasks"
order by (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)), updated_at limit 1)
union all
select next.* from found cross join lateral (select (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) as lane, queue, state, task_key, priority, kind, policy, attempts from "falldue_tasks"
where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > found.lane
order by (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)), updated_at limit 1) next)
select queue, state, task_key, priority, kind, policy, attempts from found limit $1
-- binds: limit
