select id, kind, claimed_by from "falldue_tasks"
where claimed_by <> '' and state in ('open', 'snoozed') and updated_at > (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000
order by id limit 1
-- binds: 
