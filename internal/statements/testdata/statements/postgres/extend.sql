update "falldue_tasks" as t set updated_at = (statement_timestamp() + ($1::bigint)::float8 * interval '1 microsecond')
from unnest((select $2::bigint[]), (select $3::bigint[])) as s (task_id, task_fence)
where t.id = s.task_id and t.fence = s.task_fence and coalesce(t.claimed_by = $4, false)
returning id
-- binds: lease, task_id[], task_fence[], worker
