insert into "falldue_steps" as t (task_id, fence, n, name, crashes, step_cursor, result, started_at, updated_at)
values ($1, $2, $3, $4, $5, $6::text::json, $7::text::json, statement_timestamp(), statement_timestamp())
on conflict (task_id, n) do update set name = excluded.name, fence = excluded.fence, crashes = excluded.crashes, step_cursor = excluded.step_cursor, result = excluded.result, updated_at = excluded.updated_at, started_at = case when $8::bigint = 1 then excluded.started_at else t.started_at end
-- binds: task_id, task_fence, n, name, crashes, step_cursor, result, begins
