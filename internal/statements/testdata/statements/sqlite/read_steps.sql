select task_id, fence, n, name, crashes, step_cursor, result, cast(started_at as integer), cast(updated_at as integer) from "falldue_steps" where task_id = ? order by n
-- binds: id
