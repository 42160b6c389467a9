select queue from `falldue_tasks`
where queue > ?
order by queue limit 1
-- binds: queue
