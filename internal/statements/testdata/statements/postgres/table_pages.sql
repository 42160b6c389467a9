select pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint, c.reltuples::bigint from pg_catalog.pg_class c
where c.oid = pg_catalog.to_regclass($1::text)::oid
-- binds: table
