update "falldue_tasks" as t set state = s.to_state, attempts = t.attempts + s.more, claimed_by = '', updated_at = (statement_timestamp() + (s.wait)::float8 * interval '1 microsecond'), last_error = coalesce(s.failure, t.last_error), result = s.answer::json
from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[]) as s (task_id, task_fence, to_state, more, wait, failure, answer)
where t.id = s.task_id and t.fence = s.task_fence and coalesce(t.claimed_by = $8, false)
returning id
-- binds: task_id[], task_fence[], to_state[], more[], wait[], failure[], answer[], worker
