select count(*), coalesce(max(id), 0) from (select id from "falldue_tasks"
where id > $1 and queue = $2 and state = $3 and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > $2::text || ' ' || $3::text || ' ' and (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) < $2::text || ' ' || $3::text || '!'
order by id limit $4) t
-- binds: after, queue, state, limit
