insert into "falldue_tasks" (queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload, metadata) values ($1, $2, $3, $4, $5, $6, coalesce((timestamptz 'epoch' + ($7::bigint)::float8 * interval '1 microsecond'), (statement_timestamp() + ($8::bigint)::float8 * interval '1 microsecond')), statement_timestamp(), $9, $10)
returning id
-- binds: queue, kind, policy, task_key, priority, max_attempts, at, delay, payload, metadata
