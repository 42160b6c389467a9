update "falldue_steps" set crashes = crashes + 1 where task_id = $1 and n = $2
-- binds: id, n
