select (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint - (date_part('epoch'::text, least(greatest(t.since, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, t.session from (select a.xact_start as since, 'session ' || a.pid::text || ' (' || coalesce(a.application_name, '') || ', ' || coalesce(a.state, '') || ')' as session from pg_catalog.pg_stat_activity a
where a.datname = pg_catalog.current_database() and a.xact_start is not null and a.pid <> pg_catalog.pg_backend_pid()
union all select p.prepared, 'prepared transaction ' || p.gid from pg_catalog.pg_prepared_xacts p
where p.database = pg_catalog.current_database()) t
order by t.since limit 1
-- binds: 
