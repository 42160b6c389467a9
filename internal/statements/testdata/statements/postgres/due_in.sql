select id, (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, metadata from "falldue_tasks"
where (queue || ' ' || state || ' ' || task_key || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) = ($1::text || ' ' || $2::text || ' ' || $3::text || ' ' || cast($4::bigint as text) || ' ' || $5::text || ' ' || $6::text || ' ' || cast($7::bigint as text)) and (updated_at, id) >= ((timestamptz 'epoch' + ($8::bigint)::float8 * interval '1 microsecond'), -9223372036854775808) and updated_at <= statement_timestamp()
order by updated_at limit $9
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, limit
