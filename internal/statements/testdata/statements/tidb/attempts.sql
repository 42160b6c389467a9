select fence, attempt, outcome, worker, coalesce(timestampdiff(microsecond, '1970-01-01', finished_at), -1), duration_us, error, stack from `falldue_attempts`
where task_id = ?
order by fence
-- binds: id
