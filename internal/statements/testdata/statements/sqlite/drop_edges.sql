delete from "falldue_edges" as t where (t.task_id, t.waiter) in (values (?, ?), (?, ?))
-- binds: task_id[0], waiter[0], task_id[1], waiter[1]
