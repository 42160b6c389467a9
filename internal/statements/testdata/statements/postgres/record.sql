insert into "falldue_attempts" (task_id, fence, attempt, outcome, worker, duration_us, error, stack, finished_at) select s.*, statement_timestamp() from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::bigint[]), (select $4::text[]), (select $5::text[]), (select $6::bigint[]), (select $7::text[]), (select $8::text[])) as s (task_id, fence, attempt, outcome, worker, duration_us, error, stack)
where true on conflict do nothing
-- binds: task_id[], fence[], attempt[], outcome[], worker[], duration_us[], error[], stack[]
