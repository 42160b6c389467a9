select t.id, t.task_id, t.fence from `falldue_permits` t where (t.name) in ((?), (?)) and t.task_id <> 0
-- binds: name[0], name[1]
