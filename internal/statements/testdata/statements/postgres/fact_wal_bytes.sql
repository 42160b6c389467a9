select coalesce(pg_catalog.sum(w.size), 0)::bigint, pg_catalog.pg_size_bytes(pg_catalog.current_setting('max_wal_size'))::text from pg_catalog.pg_ls_waldir() w
-- binds: 
