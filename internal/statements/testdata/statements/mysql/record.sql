insert ignore into `falldue_attempts` (task_id, fence, attempt, outcome, worker, duration_us, error, stack, finished_at)
values (?, ?, ?, ?, ?, ?, ?, ?, utc_timestamp(6)), (?, ?, ?, ?, ?, ?, ?, ?, utc_timestamp(6))
-- binds: task_id[0], fence[0], attempt[0], outcome[0], worker[0], duration_us[0], error[0], stack[0], task_id[1], fence[1], attempt[1], outcome[1], worker[1], duration_us[1], error[1], stack[1]
