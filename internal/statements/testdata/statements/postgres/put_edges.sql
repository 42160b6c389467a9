insert into "falldue_edges" (task_id, waiter) select s.* from unnest((select $1::bigint[]), (select $2::bigint[])) as s (task_id, waiter)
-- binds: task_id[], waiter[]
