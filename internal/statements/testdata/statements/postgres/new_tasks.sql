select id, queue, state, task_key, priority, kind, policy, attempts, (date_part('epoch'::text, least(greatest(updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_tasks"
where id > $1
order by id limit $2
-- binds: after, limit
