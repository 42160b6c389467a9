with recursive found (queue, place) as (select (select queue from "falldue_tasks" where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > $1::text || '!' order by (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) limit 1), 1
union all
select (select queue from "falldue_tasks" where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > f.queue || '!' order by (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) limit 1), f.place + 1 from found f where f.queue is not null and f.place < $2::bigint)
select queue from found where queue is not null
-- binds: queue, limit
