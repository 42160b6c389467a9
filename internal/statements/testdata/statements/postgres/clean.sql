select id from "falldue_tasks"
where queue = $1 and state = $2 and (queue || ' ' || state || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) > $1::text || ' ' || $2::text || ' ' and (queue || ' ' || state || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) < $1::text || ' ' || $2::text || '!' and updated_at <= (statement_timestamp() + (-($3::bigint))::float8 * interval '1 microsecond') limit $4 for update skip locked
-- binds: queue, state, keep, limit
