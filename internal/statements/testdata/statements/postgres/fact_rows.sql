select c.reltuples::bigint, '' from pg_catalog.pg_class c
where c.oid = pg_catalog.to_regclass($1::text)::oid and c.reltuples >= 0::float4
-- binds: table
