select id, coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1), metadata from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) and updated_at <= utc_timestamp(6)
order by updated_at limit ?
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, limit
