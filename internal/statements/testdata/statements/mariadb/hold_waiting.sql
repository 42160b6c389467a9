select t.id from `falldue_tasks` t where (t.id) in ((?), (?)) and t.state in ('open', 'snoozed') and t.claimed_by = '' lock in share mode
-- binds: task_id[0], task_id[1]
