update "falldue_edges" as t set outcome = $1::text from pg_catalog.unnest($2::bigint[]) as s (task_id) where t.task_id = s.task_id
-- binds: outcome, task_id[]
