select task_id, waiter, outcome from "falldue_edges"
where waiter = ? and task_id > ? order by task_id limit ?
-- binds: waiter, after, limit
