select virtualtransaction from pg_locks where locktype = 'advisory' and granted and objsubid = 1
and database = (select oid from pg_database where datname = current_database())
and (classid::bigint << 32) + objid::bigint in ($1::bigint + 1 - 1, $1::bigint + 2 - 1) order by 1
-- binds: slot
