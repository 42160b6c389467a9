select t.id from `falldue_tasks` t where (t.id) in ((?), (?)) and t.state = 'blocked' for update
-- binds: task_id[0], task_id[1]
