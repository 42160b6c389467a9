select (date_part('epoch'::text, least(greatest(updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_tasks"
where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) = ($1::text || ' ' || $2::text || ' ' || $3::text || ' ' || cast($4::bigint as text) || ' ' || $5::text || ' ' || $6::text || ' ' || cast($7::bigint as text)) order by updated_at desc limit 1 offset $8
-- binds: queue, state, task_key, priority, kind, policy, attempts, others
