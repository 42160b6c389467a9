select case when id < ? then id else 0 end from (select id from `falldue_tasks`
where queue = ? and state = ? and task_key = ? order by state, task_key, priority, kind, policy, attempts, updated_at limit ?) t
-- binds: after, queue, state, key, limit
