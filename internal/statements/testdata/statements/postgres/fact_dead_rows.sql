select s.n_dead_tup, s.n_live_tup::text from pg_catalog.pg_stat_all_tables s
where s.relid = pg_catalog.to_regclass($1::text)::oid
-- binds: table
