select id, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) and updated_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond) and updated_at <= date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond)
order by updated_at limit ? offset ? for update
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, keep, upto, limit, skip
