update "falldue_tasks" as t set state = 'cancelled', updated_at = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, last_error = ? where (t.id) in (values (?), (?)) and t.state = 'blocked'
-- binds: reason, task_id[0], task_id[1]
