select coalesce(pg_catalog.sum(pg_catalog.pg_relation_size(i.indexrelid::regclass)), 0)::bigint, max(s.n_live_tup)::text from pg_catalog.pg_index i join pg_catalog.pg_stat_all_tables s on s.relid = i.indrelid
where i.indrelid = pg_catalog.to_regclass($1::text)::oid having count(*) > 0
-- binds: table
