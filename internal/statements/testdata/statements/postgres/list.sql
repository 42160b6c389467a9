select id, queue, state, priority, kind, policy, attempts, max_attempts, fence, (date_part('epoch', least(greatest(updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, (date_part('epoch', least(greatest(created_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, (date_part('epoch', least(greatest(first_attempted_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, (date_part('epoch', least(greatest(attempted_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, (date_part('epoch', least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, rtrim(claimed_by), last_error, payload, result from "falldue_tasks"
where id > $1
order by id limit $2
-- binds: after, limit
