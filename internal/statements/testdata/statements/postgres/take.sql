update "falldue_tasks" as t set first_attempted_at = case when t.attempts = 0 then statement_timestamp() else greatest(t.first_attempted_at, (timestamptz 'epoch' + (0)::float8 * interval '1 microsecond')) end, attempted_at = statement_timestamp(), attempts = case when t.attempts < $1::bigint then t.attempts + 1 else t.attempts end, fence = least(t.fence, 9223372036854775806) + 1, state = $2::text, updated_at = (statement_timestamp() + ($3::bigint)::float8 * interval '1 microsecond'), claimed_by = $4
from unnest((select $5::bigint[]), (select $6::bigint[])) as s (task_id, task_fence)
where t.id = s.task_id and t.fence = s.task_fence
-- binds: most, running, lease, worker, task_id[], task_fence[]
