update "falldue_schedules" as t set last_task = (select s.task from unnest((select $1::text[]), (select $2::bigint[])) as s (name, task) where s.name = t.name), last_at = statement_timestamp() where t.name = any(array(select s.name from pg_catalog.unnest((select $3::text[])) as s (name)))
-- binds: name[], task[], name[]
