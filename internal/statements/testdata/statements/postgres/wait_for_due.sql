select t.name, t.hash, (date_part('epoch'::text, least(greatest(t.next_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, t.last_task from "falldue_schedules" t
where t.name = any(array(select s.name from pg_catalog.unnest((select $1::text[])) as s (name))) and t.paused = 0 and t.next_at <= statement_timestamp() for update
-- binds: name[]
