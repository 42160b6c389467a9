delete from "falldue_tasks" as t where (t.id) in (values (?), (?))
-- binds: task_id[0], task_id[1]
