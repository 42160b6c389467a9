delete t from `falldue_tasks` t where (t.id) in ((?), (?)) and t.state in ('done', 'dead', 'cancelled')
-- binds: task_id[0], task_id[1]
