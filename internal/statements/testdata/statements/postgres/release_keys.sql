delete from "falldue_uniques" as t using unnest($1::text[], $2::bigint[]) as s (hash, task_id)
where t.hash = s.hash and t.task_id = s.task_id
-- binds: hash[], task_id[]
