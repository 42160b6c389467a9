select t.id, t.queue, t.kind, t.task_key, t.state, t.attempts, t.fence, (date_part('epoch'::text, least(greatest(t.updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, coalesce(rtrim(t.claimed_by), ''), coalesce(substr(t.last_error, 1, 500), ''), (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_tasks" t
where t.id > $1
order by t.id limit $2
-- binds: after, limit
