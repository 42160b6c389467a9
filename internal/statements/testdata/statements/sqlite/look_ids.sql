select case when id > ? and kind = ? and created_at > ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?))) and state in ('open', 'snoozed') and claimed_by <> '' and updated_at > (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 then id else 0 end from (select id, kind, created_at, state, claimed_by, updated_at from "falldue_tasks"
where queue = ? and state = ? order by state, task_key, priority, kind, policy, attempts, updated_at limit ?) t
-- binds: after, kind, newer, queue, state, limit
