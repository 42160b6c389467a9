delete from "falldue_steps" as t where (t.task_id) in (values (?), (?))
-- binds: task_id[0], task_id[1]
