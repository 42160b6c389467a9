update "falldue_tasks" as t set updated_at = case when t.state = 'open' and t.attempts > 0 then (statement_timestamp() + (s.wait)::float8 * interval '1 microsecond') else least(t.updated_at, (statement_timestamp() + (s.wait)::float8 * interval '1 microsecond')) end, state = case when t.attempts > 0 then 'snoozed' else t.state end, claimed_by = case when s.wait > 0 then '' else t.claimed_by end
from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::bigint[])) as s (task_id, task_fence, wait)
where t.id = s.task_id and t.fence = s.task_fence and t.state in ('open', 'snoozed') and not (t.claimed_by <> '' and t.updated_at > statement_timestamp())
-- binds: task_id[], task_fence[], wait[]
