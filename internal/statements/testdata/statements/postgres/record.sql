insert into "falldue_attempts" (task_id, fence, attempt, outcome, worker, duration_us, error, stack, finished_at) select s.*, statement_timestamp() from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[]) as s (task_id, fence, attempt, outcome, worker, duration_us, error, stack)
where true on conflict do nothing
-- binds: task_id[], fence[], attempt[], outcome[], worker[], duration_us[], error[], stack[]
