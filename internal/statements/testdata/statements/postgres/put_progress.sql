insert into "falldue_progress" (task_id, fence, millionths, message, updated_at) select s.*, statement_timestamp() from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::bigint[]), (select $4::text[])) as s (task_id, task_fence, millionths, message)
where true on conflict (task_id) do update set fence = excluded.fence, millionths = excluded.millionths, message = excluded.message, updated_at = excluded.updated_at
-- binds: task_id[], task_fence[], millionths[], message[]
