select fence, attempt, outcome, worker, (date_part('epoch'::text, least(greatest(finished_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, duration_us, error, stack from "falldue_attempts"
where task_id = $1
order by fence
-- binds: id
