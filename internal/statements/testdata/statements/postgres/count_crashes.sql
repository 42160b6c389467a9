update "falldue_steps" as t set crashes = t.crashes + 1 from unnest((select $1::bigint[]), (select $2::bigint[])) as s (task_id, task_fence) where t.task_id = s.task_id and t.fence = s.task_fence and t.result is null
-- binds: task_id[], task_fence[]
