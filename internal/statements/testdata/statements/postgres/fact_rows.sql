select greatest(c.reltuples::bigint, s.n_live_tup), '' from pg_catalog.pg_class c join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
where c.oid = pg_catalog.to_regclass($1::text)::oid
-- binds: table
