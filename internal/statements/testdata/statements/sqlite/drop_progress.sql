delete from "falldue_progress" as t where (t.task_id) in (values (?), (?))
-- binds: task_id[0], task_id[1]
