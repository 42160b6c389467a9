insert into `falldue_edges` (task_id, waiter)
values (?, ?), (?, ?)
-- binds: task_id[0], waiter[0], task_id[1], waiter[1]
