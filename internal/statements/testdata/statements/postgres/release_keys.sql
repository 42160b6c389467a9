delete from "falldue_uniques" as t using unnest((select $1::text[]), (select $2::bigint[])) as s (hash, task_id)
where t.hash = s.hash and t.task_id = s.task_id
-- binds: hash[], task_id[]
