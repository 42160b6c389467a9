select t.id from "falldue_permits" t where (t.id, t.task_id, t.fence, t.takes) in (values (?, ?, ?, ?), (?, ?, ?, ?))
-- binds: permit[0], task_id[0], task_fence[0], takes[0], permit[1], task_id[1], task_fence[1], takes[1]
