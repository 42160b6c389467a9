select coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? order by updated_at desc limit 1 offset ?
-- binds: queue, state, task_key, priority, kind, policy, attempts, others
