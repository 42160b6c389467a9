select t.id from "falldue_tasks" t where (t.id) in (values (?), (?)) and t.state = 'blocked'
-- binds: task_id[0], task_id[1]
