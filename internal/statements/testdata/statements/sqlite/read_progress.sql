select task_id, fence, millionths, message, cast(updated_at as integer) from "falldue_progress" where task_id = ?
-- binds: id
