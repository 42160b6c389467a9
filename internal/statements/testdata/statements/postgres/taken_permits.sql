select t.id from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) as s (permit, task_id, task_fence, takes) join "falldue_permits" t on t.id = s.permit and t.task_id = s.task_id and t.fence = s.task_fence and t.takes = s.takes
-- binds: permit[], task_id[], task_fence[], takes[]
