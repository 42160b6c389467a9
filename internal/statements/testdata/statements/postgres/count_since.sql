select count(*) from (select 1 from "falldue_tasks"
where (queue || ' ' || state || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) = ($1::text || ' ' || $2::text || ' ' || cast($3::bigint as text) || ' ' || $4::text || ' ' || $5::text || ' ' || cast($6::bigint as text)) and updated_at <= (statement_timestamp() + (-($7::bigint))::float8 * interval '1 microsecond') limit $8) t
-- binds: queue, state, priority, kind, policy, attempts, wait, limit
