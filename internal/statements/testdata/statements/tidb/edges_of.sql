select t.task_id, t.waiter, t.outcome from `falldue_edges` t where (t.waiter) in ((?), (?)) and not exists (select 1 from `falldue_tasks` k where k.id = t.waiter) limit ?
-- binds: task_id[0], task_id[1], limit
