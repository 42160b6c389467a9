update `falldue_steps` set crashes = crashes + 1 where task_id = ? and n = ?
-- binds: id, n
