select case when id > ? and (task_key = ? or substr(task_key, 1, length(?)) = ? or replace(task_key, ?, '') <> task_key or substr(task_key, length(task_key) - length(?) + 1) = ?) then id else 0 end from (select id, task_key from `falldue_tasks`
where queue = ? and state = ? and task_key >= ? and task_key < ? order by state, task_key, priority, kind, policy, attempts, updated_at limit ?) t
-- binds: after, key, part_first, part_first, part_within, part_last, part_last, queue, state, key, key_end, limit
