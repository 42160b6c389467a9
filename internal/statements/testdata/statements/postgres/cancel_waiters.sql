update "falldue_tasks" as t set state = 'cancelled', updated_at = statement_timestamp() from pg_catalog.unnest($1::bigint[]) as s (task_id) where t.id = s.task_id and t.state = 'blocked'
-- binds: task_id[]
