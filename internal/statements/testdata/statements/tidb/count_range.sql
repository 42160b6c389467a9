select count(*) from (select 1 from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) and updated_at < date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) limit ?) t
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, until, limit
