insert into "falldue_flows" (task_id, on_death) select s.* from unnest((select $1::bigint[]), (select $2::bigint[])) as s (task_id, on_death)
-- binds: task_id[], on_death[]
