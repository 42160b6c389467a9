delete from "falldue_tasks" as t using unnest($1::bigint[]) as s (task_id)
where t.id = s.task_id and t.state in ('done', 'dead', 'cancelled')
-- binds: task_id[]
