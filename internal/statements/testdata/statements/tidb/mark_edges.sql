update `falldue_edges` as t set outcome = ? where (t.task_id) in ((?), (?)) and (t.outcome <> 'done' or ? = 0)
-- binds: outcome, task_id[0], task_id[1], deleted
