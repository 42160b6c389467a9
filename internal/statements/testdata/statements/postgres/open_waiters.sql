update "falldue_tasks" as t set state = 'open', updated_at = greatest(t.updated_at, statement_timestamp()) from pg_catalog.unnest((select $1::bigint[])) as s (task_id) where t.id = s.task_id and t.state = 'blocked'
-- binds: task_id[]
