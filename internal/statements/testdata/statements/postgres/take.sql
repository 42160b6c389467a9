update "falldue_tasks" as t set first_attempted_at = case when t.attempts = 0 then statement_timestamp() else greatest(t.first_attempted_at, (timestamptz 'epoch' + (0)::float8 * interval '1 microsecond')) end, attempted_at = statement_timestamp(), attempts = least(t.attempts, 2147483646) + 1, fence = least(t.fence, 9223372036854775806) + 1, state = $1::text, updated_at = (statement_timestamp() + ($2::bigint)::float8 * interval '1 microsecond'), claimed_by = $3
from unnest($4::bigint[], $5::bigint[]) as s (task_id, task_fence)
where t.id = s.task_id and t.fence = s.task_fence
-- binds: running, lease, worker, task_id[], task_fence[]
