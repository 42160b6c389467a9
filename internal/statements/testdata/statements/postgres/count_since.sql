select count(*) from (select 1 from "falldue_tasks"
where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) = ($1::text || ' ' || $2::text || ' ' || $3::text || ' ' || cast($4::bigint as text) || ' ' || $5::text || ' ' || $6::text || ' ' || cast($7::bigint as text)) and updated_at <= (statement_timestamp() + (-($8::bigint))::float8 * interval '1 microsecond') limit $9) t
-- binds: queue, state, task_key, priority, kind, policy, attempts, wait, limit
