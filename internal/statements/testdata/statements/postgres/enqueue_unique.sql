insert into "falldue_tasks" (unique_key, queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload) select unique_key, queue, kind, policy, task_key, priority, max_attempts, coalesce((timestamptz 'epoch' + (at)::float8 * interval '1 microsecond'), (statement_timestamp() + (delay)::float8 * interval '1 microsecond')), statement_timestamp(), payload::json
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[]) as s (unique_key, queue, kind, policy, task_key, priority, max_attempts, at, delay, payload)
where true
returning id
-- binds: unique_key[], queue[], kind[], policy[], task_key[], priority[], max_attempts[], at[], delay[], payload[]
