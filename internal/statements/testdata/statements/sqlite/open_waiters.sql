update "falldue_tasks" as t set state = 'open', updated_at = max(t.updated_at, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000) where (t.id) in (values (?), (?)) and t.state = 'blocked'
-- binds: task_id[0], task_id[1]
