insert into "falldue_steps" as t (task_id, fence, n, name, crashes, step_cursor, result, started_at, updated_at)
values (?, ?, ?, ?, ?, ?, ?, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000)
on conflict (task_id, n) do update set name = excluded.name, fence = excluded.fence, crashes = excluded.crashes, step_cursor = excluded.step_cursor, result = excluded.result, updated_at = excluded.updated_at, started_at = case when ? = 1 then excluded.started_at else t.started_at end
-- binds: task_id, task_fence, n, name, crashes, step_cursor, result, begins
