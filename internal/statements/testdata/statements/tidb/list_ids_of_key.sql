select id from `falldue_tasks`
where id > ? and queue = ? and state = ? and task_key = ? limit ?
-- binds: after, queue, state, key, limit
