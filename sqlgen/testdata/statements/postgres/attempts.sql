select fence, attempt, outcome, worker, (date_part('epoch', finished_at) * 1000000)::bigint, duration_us, error, stack from "falldue_attempts" where task_id = $1 order by fence
