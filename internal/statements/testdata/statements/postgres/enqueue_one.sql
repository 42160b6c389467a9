insert into "falldue_tasks" (queue, kind, policy, priority, max_attempts, updated_at, created_at, payload) values ($1, $2, $3, $4, $5, coalesce((timestamptz 'epoch' + ($6::bigint)::float8 * interval '1 microsecond'), (statement_timestamp() + ($7::bigint)::float8 * interval '1 microsecond')), statement_timestamp(), $8)
returning id
-- binds: queue, kind, policy, priority, max_attempts, at, delay, payload
