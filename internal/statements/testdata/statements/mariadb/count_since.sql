select count(*) from (select 1 from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond) limit ?) t
-- binds: queue, state, task_key, priority, kind, policy, attempts, wait, limit
