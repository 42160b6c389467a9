select fence, attempt, outcome, worker, cast(finished_at as integer), duration_us, error, stack from "falldue_attempts"
where task_id = ?
order by fence
-- binds: id
