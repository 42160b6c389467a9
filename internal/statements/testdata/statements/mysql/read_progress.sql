select task_id, fence, millionths, message, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) from `falldue_progress` where task_id = ?
-- binds: id
