select fence, attempt, outcome, worker, (date_part('epoch'::text, least(greatest(finished_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, duration_us, error, stack, 0 from "falldue_attempts" where task_id = $1::bigint
union all select fence, attempt, outcome, worker, (date_part('epoch'::text, least(greatest(finished_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, duration_us, error, stack, 1 from "falldue_attempts" where task_id = $2::bigint
-- binds: task_id[0], task_id[1]
