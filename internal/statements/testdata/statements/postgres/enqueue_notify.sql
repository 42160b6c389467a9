insert into "falldue_tasks" (queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload) select queue, kind, policy, task_key, priority, max_attempts, coalesce((timestamptz 'epoch' + (at)::float8 * interval '1 microsecond'), (statement_timestamp() + (delay)::float8 * interval '1 microsecond')), statement_timestamp(), payload::json
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]) as s (queue, kind, policy, task_key, priority, max_attempts, at, delay, payload)
where true
returning id, (select pg_notify($10, $11))
-- binds: queue[], kind[], policy[], task_key[], priority[], max_attempts[], at[], delay[], payload[], channel, notice
