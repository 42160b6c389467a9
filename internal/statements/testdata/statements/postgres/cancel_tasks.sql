update "falldue_tasks" as t set fence = least(t.fence, 9223372036854775806) + 1, state = 'cancelled', claimed_by = '', updated_at = statement_timestamp()
from unnest((select $1::bigint[]), (select $2::bigint[])) as s (task_id, task_fence)
where t.id = s.task_id and t.fence = s.task_fence and t.state in ('blocked', 'open', 'snoozed')
-- binds: task_id[], task_fence[]
