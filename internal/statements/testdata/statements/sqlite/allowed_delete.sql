select t.id, t.fence, t.queue, case when t.claimed_by <> '' then 1 else 0 end, coalesce(t.unique_key, '') from "falldue_tasks" t where (t.id) in (values (?), (?)) and not (t.state in ('open', 'snoozed') and t.claimed_by <> '' and t.updated_at > (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000)
-- binds: task_id[0], task_id[1]
