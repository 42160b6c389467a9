select t.id from unnest((select $1::bigint[]), (select $2::bigint[])) as s (task_id, task_fence) join "falldue_tasks" t on t.id = s.task_id and t.fence = s.task_fence and coalesce(t.claimed_by = $3, false) for update skip locked
-- binds: task_id[], task_fence[], worker
