select t.id, t.task_id, t.fence from pg_catalog.unnest((select $1::text[])) as s (name) cross join (select 0 as first, 2147483647 as last offset 0) numbers
cross join lateral (select id, task_id, fence from "falldue_permits" where name = s.name and n between numbers.first and numbers.last and task_id <> 0 offset 0) t
-- binds: name[]
