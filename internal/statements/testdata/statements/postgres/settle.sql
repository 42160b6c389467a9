update "falldue_tasks" as t set state = s.to_state, attempts = t.attempts + s.more, claimed_by = '', updated_at = (statement_timestamp() + (s.wait)::float8 * interval '1 microsecond'), last_error = coalesce(s.failure, t.last_error), result = s.answer::json
from (select task_id, task_fence, to_state, more, wait, nullif(failure, E'\x01'::text) as failure, nullif(answer, E'\x01'::text) as answer from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::text[]), (select $4::bigint[]), (select $5::bigint[]), (select $6::text[]), (select $7::text[])) as s (task_id, task_fence, to_state, more, wait, failure, answer)) as s
where t.id = s.task_id and t.fence = s.task_fence and coalesce(t.claimed_by = $8, false)
returning id
-- binds: task_id[], task_fence[], to_state[], more[], wait[], failure[], answer[], worker
