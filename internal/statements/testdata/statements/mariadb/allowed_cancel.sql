select t.id, t.fence, t.queue, case when t.claimed_by <> '' then 1 else 0 end, coalesce(t.unique_key, '') from `falldue_tasks` t where (t.id) in ((?), (?)) and t.state in ('blocked', 'open', 'snoozed') for update skip locked
-- binds: task_id[0], task_id[1]
