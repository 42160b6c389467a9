delete from "falldue_attempts" as t where (t.task_id, t.fence) in (values (?, ?), (?, ?))
-- binds: task_id[0], task_fence[0], task_id[1], task_fence[1]
