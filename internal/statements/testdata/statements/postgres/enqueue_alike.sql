insert into "falldue_tasks" (queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload) select $1::text, $2::text, $3::text, $4::text, $5::bigint, $6::bigint, coalesce((timestamptz 'epoch' + ($7::bigint)::float8 * interval '1 microsecond'), (statement_timestamp() + ($8::bigint)::float8 * interval '1 microsecond')), statement_timestamp(), payload::json
from pg_catalog.unnest((select $9::text[])) as s (payload)
where true
returning id
-- binds: queue, kind, policy, task_key, priority, max_attempts, at, delay, payload[]
