update "falldue_schedules" as t set last_task = (select s.task from unnest($1::text[], $2::bigint[]) as s (name, task) where s.name = t.name), last_at = statement_timestamp() where t.name = any(array(select s.name from pg_catalog.unnest($3::text[]) as s (name)))
-- binds: name[], task[], name[]
