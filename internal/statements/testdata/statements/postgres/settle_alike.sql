update "falldue_tasks" as t set state = $1::text, attempts = t.attempts + $2::bigint, claimed_by = '', updated_at = (statement_timestamp() + ($3::bigint)::float8 * interval '1 microsecond'), last_error = coalesce($4::text, t.last_error), result = $5::text::json
from unnest((select $6::bigint[]), (select $7::bigint[])) as s (task_id, task_fence)
where t.id = s.task_id and t.fence = s.task_fence and coalesce(t.claimed_by = $8, false)
returning id
-- binds: to_state, more, wait, failure, answer, task_id[], task_fence[], worker
