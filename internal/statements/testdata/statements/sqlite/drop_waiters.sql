delete from "falldue_flows" as t where (t.task_id) in (values (?), (?))
-- binds: task_id[0], task_id[1]
