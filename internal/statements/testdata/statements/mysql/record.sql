insert ignore into `falldue_attempts` (task_id, fence, attempt, outcome, worker, duration_us, error, stack, finished_at)
values (?, ?, ?, ?, ?, ?, ?, ?, utc_timestamp(6)), (?, ?, ?, ?, ?, ?, ?, ?, utc_timestamp(6))
