select id from "falldue_tasks"
where id > $1 and queue = $2 and state = $3 and task_key = $4 and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > $2::text || ' ' || $3::text || ' ' || $4::text || ' ' and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) < $2::text || ' ' || $3::text || ' ' || $4::text || '!' limit $5
-- binds: after, queue, state, key, limit
