select t.task_id, t.name from unnest((select $1::bigint[]), (select $2::bigint[])) as s (task_id, task_fence) join "falldue_steps" t on t.task_id = s.task_id and t.fence = s.task_fence and t.result is null order by t.task_id, t.n
-- binds: task_id[], task_fence[]
