select t.bytes, t.slot from (select pg_catalog.pg_wal_lsn_diff(case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn() else pg_catalog.pg_current_wal_lsn() end, r.restart_lsn)::bigint as bytes, r.slot_name::text as slot from pg_catalog.pg_replication_slots r
where r.restart_lsn is not null) t
order by t.bytes desc limit 1
-- binds: 
