insert into "falldue_tasks" (unique_key, queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload) select unique_key, queue, kind, policy, task_key, priority, max_attempts, coalesce((timestamptz 'epoch' + (at)::float8 * interval '1 microsecond'), (statement_timestamp() + (delay)::float8 * interval '1 microsecond')), statement_timestamp(), payload::json
from (select unique_key, queue, kind, policy, task_key, priority, max_attempts, nullif(at, '-9223372036854775808'::bigint) as at, delay, payload from unnest((select $1::text[]), (select $2::text[]), (select $3::text[]), (select $4::text[]), (select $5::text[]), (select $6::bigint[]), (select $7::bigint[]), (select $8::bigint[]), (select $9::bigint[]), (select $10::text[])) as s (unique_key, queue, kind, policy, task_key, priority, max_attempts, at, delay, payload)) as s
where true
returning id
-- binds: unique_key[], queue[], kind[], policy[], task_key[], priority[], max_attempts[], at[], delay[], payload[]
