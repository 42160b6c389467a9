delete from "falldue_tasks" as t where (t.id) in (values (?), (?)) and t.state in ('done', 'dead', 'cancelled')
-- binds: task_id[0], task_id[1]
