insert into `falldue_progress` (task_id, fence, millionths, message, updated_at)
values (?, ?, ?, ?, utc_timestamp(6)), (?, ?, ?, ?, utc_timestamp(6)) on duplicate key update fence = values(fence), millionths = values(millionths), message = values(message), updated_at = values(updated_at)
-- binds: task_id[0], task_fence[0], millionths[0], message[0], task_id[1], task_fence[1], millionths[1], message[1]
