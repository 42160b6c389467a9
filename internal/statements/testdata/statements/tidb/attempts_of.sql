select fence, attempt, outcome, worker, coalesce(timestampdiff(microsecond, '1970-01-01', finished_at), -1), duration_us, error, stack, 0 from `falldue_attempts` where task_id = ?
union all select fence, attempt, outcome, worker, coalesce(timestampdiff(microsecond, '1970-01-01', finished_at), -1), duration_us, error, stack, 1 from `falldue_attempts` where task_id = ?
-- binds: task_id[0], task_id[1]
