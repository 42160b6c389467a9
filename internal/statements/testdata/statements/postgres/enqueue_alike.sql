insert into "falldue_tasks" (queue, kind, policy, priority, max_attempts, updated_at, created_at, payload) select $1::text, $2::text, $3::text, $4::bigint, $5::bigint, coalesce((timestamptz 'epoch' + ($6::bigint)::float8 * interval '1 microsecond'), (statement_timestamp() + ($7::bigint)::float8 * interval '1 microsecond')), statement_timestamp(), payload::json
from pg_catalog.unnest($8::text[]) as s (payload)
where true
returning id
-- binds: queue, kind, policy, priority, max_attempts, at, delay, payload[]
