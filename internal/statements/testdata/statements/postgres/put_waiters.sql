insert into "falldue_flows" (task_id, on_death) select s.* from unnest($1::bigint[], $2::bigint[]) as s (task_id, on_death)
-- binds: task_id[], on_death[]
