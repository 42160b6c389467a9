select fence, attempt, outcome, worker, finished_at, duration_us, error, stack from "falldue_attempts" where task_id = ? order by fence
