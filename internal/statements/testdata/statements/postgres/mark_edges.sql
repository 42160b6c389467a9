update "falldue_edges" as t set outcome = $1::text where t.task_id = any(array(select s.task_id from pg_catalog.unnest((select $2::bigint[])) as s (task_id))) and (t.outcome <> 'done' or $3::bigint = 0)
-- binds: outcome, task_id[], deleted
