select queue, state, kind, policy, attempts, floor((date_part('epoch'::text, least(greatest(updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint::float8 / 60000000::float8)::bigint, (date_part('epoch'::text, least(greatest(min(updated_at), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, (date_part('epoch'::text, least(greatest(max(updated_at), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, count(*), (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_tasks"
where state in ('open', 'snoozed') and task_key = $1
group by 6, 5, 4, 3, 2, 1
-- binds: key
