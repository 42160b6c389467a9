select t.id, t.task_id, t.fence from "falldue_permits" t where (t.task_id) in (values (?), (?)) and t.name not like '% rate %' and t.name not like '% bucket %'
-- binds: task_id[0], task_id[1]
