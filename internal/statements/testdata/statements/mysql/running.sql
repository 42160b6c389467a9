select id, kind, claimed_by from `falldue_tasks`
where claimed_by <> '' and state in ('open', 'snoozed') and updated_at > utc_timestamp(6)
order by id limit 1
-- binds: 
