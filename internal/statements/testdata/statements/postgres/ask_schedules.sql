update "falldue_schedules" as t set asked_at = statement_timestamp() where t.name = any(array(select s.name from pg_catalog.unnest((select $1::text[])) as s (name))) and t.asked_at = (timestamptz 'epoch' + (0)::float8 * interval '1 microsecond')
-- binds: name[]
