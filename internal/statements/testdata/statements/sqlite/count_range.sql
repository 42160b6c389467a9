select count(*) from (select 1 from "falldue_tasks"
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= ? and updated_at < ? limit ?) t
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, until, limit
