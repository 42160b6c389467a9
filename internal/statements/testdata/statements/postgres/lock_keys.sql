select t.hash, t.token, t.task_id from pg_catalog.unnest((select $1::text[])) as s (hash) join "falldue_uniques" t on t.hash = s.hash order by t.hash
for update
-- binds: hash[]
