update "falldue_permits" as t set taken_until = (t.taken_until + (-($1::bigint))::float8 * interval '1 microsecond') from pg_catalog.unnest($2::bigint[]) as s (permit) where t.id = s.permit and t.token = $3::bigint
-- binds: wait, permit[], token
