update `falldue_tasks` as t set state = 'cancelled', updated_at = utc_timestamp(6), last_error = ? where (t.id) in ((?), (?)) and t.state = 'blocked'
-- binds: reason, task_id[0], task_id[1]
