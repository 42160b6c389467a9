delete t from `falldue_attempts` t where (t.task_id) in ((?), (?))
