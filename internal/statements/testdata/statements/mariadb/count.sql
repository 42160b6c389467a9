select queue, kind, state, count(*) from `falldue_tasks`
group by queue, kind, state order by queue, kind, state
-- binds: 
