select id, (date_part('epoch'::text, least(greatest(updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_tasks"
where (queue || ' ' || state || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) = ($1::text || ' ' || $2::text || ' ' || cast($3::bigint as text) || ' ' || $4::text || ' ' || $5::text || ' ' || cast($6::bigint as text)) and updated_at >= (timestamptz 'epoch' + ($7::bigint)::float8 * interval '1 microsecond') and updated_at <= (statement_timestamp() + (-($8::bigint))::float8 * interval '1 microsecond')
order by updated_at limit $9 offset $10 for update skip locked
-- binds: queue, state, priority, kind, policy, attempts, since, keep, limit, skip
