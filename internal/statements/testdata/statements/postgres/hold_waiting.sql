select t.id from pg_catalog.unnest((select $1::bigint[])) as s (task_id) join "falldue_tasks" t on t.id = s.task_id and t.state in ('open', 'snoozed') and t.claimed_by = '' for share
-- binds: task_id[]
