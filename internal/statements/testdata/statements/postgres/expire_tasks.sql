update "falldue_tasks" as t set fence = least(t.fence, 9223372036854775806) + 1, state = 'cancelled', updated_at = statement_timestamp(), last_error = $1::text
from unnest((select $2::bigint[]), (select $3::bigint[])) as s (task_id, task_fence)
where t.id = s.task_id and t.fence = s.task_fence and t.state = 'open' and t.attempts = 0 and t.claimed_by = ''
-- binds: error, task_id[], task_fence[]
