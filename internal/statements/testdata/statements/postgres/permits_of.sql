select t.id, t.task_id, t.fence from pg_catalog.unnest($1::bigint[]) as s (task_id) join "falldue_permits" t on t.task_id = s.task_id where t.name not like '% rate %' and t.name not like '% bucket %'
-- binds: task_id[]
