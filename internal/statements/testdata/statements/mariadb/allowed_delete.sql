select t.id, t.fence, t.queue, case when t.claimed_by <> '' then 1 else 0 end, coalesce(t.unique_key, '') from `falldue_tasks` t where (t.id) in ((?), (?)) and not (t.state in ('open', 'snoozed') and t.claimed_by <> '' and t.updated_at > utc_timestamp(6)) for update
-- binds: task_id[0], task_id[1]
