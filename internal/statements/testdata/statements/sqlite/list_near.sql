select id, queue, state, task_key, priority, kind, policy, attempts, max_attempts, fence, cast(updated_at as integer), cast(created_at as integer), cast(first_attempted_at as integer), cast(attempted_at as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer), coalesce(rtrim(claimed_by), ''), last_error, payload, result, metadata from "falldue_tasks"
where id > ? and +queue = ? and state = ? and (task_key = ? or substr(task_key, 1, length(?)) = ? or replace(task_key, ?, '') <> task_key or substr(task_key, length(task_key) - length(?) + 1) = ?) and id <= ?
order by id limit ?
-- binds: after, queue, state, key, part_first, part_first, part_within, part_last, part_last, upto, limit
