select queue from "falldue_tasks"
where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > $1::text || '!'
order by (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) limit 1
-- binds: queue
