insert into `falldue_steps` (task_id, fence, n, name, crashes, step_cursor, result, started_at, updated_at)
values (?, ?, ?, ?, ?, ?, ?, utc_timestamp(6), utc_timestamp(6))
on duplicate key update name = values(name), fence = values(fence), crashes = values(crashes), step_cursor = values(step_cursor), result = values(result), updated_at = values(updated_at), started_at = case when ? = 1 then values(started_at) else started_at end
-- binds: task_id, task_fence, n, name, crashes, step_cursor, result, begins
