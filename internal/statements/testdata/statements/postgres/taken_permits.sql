select t.id from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as s (permit, task_id, task_fence) join "falldue_permits" t on t.id = s.permit and t.task_id = s.task_id and t.fence = s.task_fence
-- binds: permit[], task_id[], task_fence[]
