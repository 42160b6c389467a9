select t.id from pg_catalog.unnest((select $1::bigint[])) as s (permit) join "falldue_permits" t on t.id = s.permit and t.token = $2::bigint
-- binds: permit[], token
