select task_id, fence, n, name, crashes, step_cursor, result, coalesce(timestampdiff(microsecond, '1970-01-01', started_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) from `falldue_steps` where task_id = ? order by n
-- binds: id
