update "falldue_tasks" as t set metadata = replace(t.metadata::text, '"falldue.expires":', '"falldue.expired":')::json, fence = case when t.state = 'done' then least(t.fence, 9223372036854775806) + 1 else t.fence end, state = 'open', attempts = 0, updated_at = case when $1::bigint = 1 then t.created_at else (statement_timestamp() + (s.wait)::float8 * interval '1 microsecond') end, result = null
from unnest((select $2::bigint[]), (select $3::bigint[]), (select $4::bigint[])) as s (task_id, task_fence, wait)
where t.id = s.task_id and t.fence = s.task_fence and t.state in ('done', 'dead', 'cancelled')
-- binds: in_place, task_id[], task_fence[], wait[]
