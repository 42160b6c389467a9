with s as materialized (select nextval((select pg_get_serial_sequence($1, 'id')::regclass)) as id, s.* from (select unique_key, queue, kind, policy, task_key, priority, max_attempts, nullif(at, '-9223372036854775808'::bigint) as at, delay, payload, was, wait from unnest((select $2::text[]), (select $3::text[]), (select $4::text[]), (select $5::text[]), (select $6::text[]), (select $7::bigint[]), (select $8::bigint[]), (select $9::bigint[]), (select $10::bigint[]), (select $11::text[]), (select $12::bigint[]), (select $13::bigint[])) as s (unique_key, queue, kind, policy, task_key, priority, max_attempts, at, delay, payload, was, wait)) as s),
taken as (insert into "falldue_uniques" as u (hash, task_id, token, was, held_until) select unique_key, id, $14::bigint, was, (statement_timestamp() + (wait)::float8 * interval '1 microsecond') from s order by unique_key collate "C"
on conflict (hash) do update set task_id = excluded.task_id, token = excluded.token, was = excluded.was, held_until = excluded.held_until
where u.token = excluded.was
returning hash)
insert into "falldue_tasks" (id, unique_key, queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload) select s.id, s.unique_key, s.queue, s.kind, s.policy, s.task_key, s.priority, s.max_attempts, coalesce((timestamptz 'epoch' + (s.at)::float8 * interval '1 microsecond'), (statement_timestamp() + (s.delay)::float8 * interval '1 microsecond')), statement_timestamp(), s.payload::json
from s join taken on taken.hash = s.unique_key
returning id, (select pg_notify($15, $16)), unique_key
-- binds: table, unique_key[], queue[], kind[], policy[], task_key[], priority[], max_attempts[], at[], delay[], payload[], was[], wait[], token, channel, notice
