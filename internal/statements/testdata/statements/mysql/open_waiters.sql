update `falldue_tasks` as t set state = 'open', updated_at = greatest(t.updated_at, utc_timestamp(6)) where (t.id) in ((?), (?)) and t.state = 'blocked'
-- binds: task_id[0], task_id[1]
