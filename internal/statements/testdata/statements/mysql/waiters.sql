select f.task_id, f.on_death, coalesce(k.state, ''), coalesce(k.queue, '') from `falldue_flows` f left join `falldue_tasks` k on k.id = f.task_id
where f.task_id > ? order by f.task_id limit ?
-- binds: after, limit
