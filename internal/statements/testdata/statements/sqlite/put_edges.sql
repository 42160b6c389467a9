insert into "falldue_edges" (task_id, waiter) select s.* from (select column1 as task_id, column2 as waiter from (values (?, ?), (?, ?))) as s
-- binds: task_id[0], waiter[0], task_id[1], waiter[1]
