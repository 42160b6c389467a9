update "falldue_tasks" as t set state = 'cancelled', updated_at = statement_timestamp(), last_error = $1::text from pg_catalog.unnest((select $2::bigint[])) as s (task_id) where t.id = s.task_id and t.state = 'blocked'
-- binds: reason, task_id[]
