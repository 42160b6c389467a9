update "falldue_tasks" as t set state = 'blocked'
from unnest($1::bigint[], $2::bigint[]) as s (task_id, task_fence)
where t.id = s.task_id and t.fence = s.task_fence
-- binds: task_id[], task_fence[]
