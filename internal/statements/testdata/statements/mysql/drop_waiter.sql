delete from `falldue_flows` where task_id = ?
-- binds: id
