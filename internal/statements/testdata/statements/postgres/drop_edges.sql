delete from "falldue_edges" as t using unnest((select $1::bigint[]), (select $2::bigint[])) as s (task_id, waiter)
where t.task_id = s.task_id and t.waiter = s.waiter
-- binds: task_id[], waiter[]
