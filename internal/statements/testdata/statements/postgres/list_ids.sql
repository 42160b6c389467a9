select id from "falldue_tasks"
where id > $1 and queue = $2 and kind = $3 and state = $4 and state in ('blocked', 'open', 'snoozed') and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > $2::text || ' ' || $4::text || ' ' and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) < $2::text || ' ' || $4::text || '!' limit $5
-- binds: after, queue, kind, state, limit
