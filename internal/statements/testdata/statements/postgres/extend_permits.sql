update "falldue_permits" as t set taken_until = greatest(t.taken_until, (statement_timestamp() + ($1::bigint)::float8 * interval '1 microsecond')) from pg_catalog.unnest((select $2::bigint[])) as s (permit) where t.id = s.permit and t.token = $3::bigint
-- binds: wait, permit[], token
