update "falldue_edges" as t set outcome = ? where (t.task_id) in (values (?), (?))
-- binds: outcome, task_id[0], task_id[1]
