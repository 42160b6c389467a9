select t.id, t.fence, t.queue, case when t.claimed_by <> '' then 1 else 0 end, coalesce(t.unique_key, '') from pg_catalog.unnest($1::bigint[]) as s (task_id) join "falldue_tasks" t on t.id = s.task_id and t.state in ('blocked', 'open', 'snoozed') for update skip locked
-- binds: task_id[]
