select t.id, t.queue, t.kind, t.task_key, t.state, t.attempts, t.fence, coalesce(timestampdiff(microsecond, '1970-01-01', t.updated_at), -1), coalesce(rtrim(t.claimed_by), ''), coalesce(substr(t.last_error, 1, 500), ''), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1), 0 from (select id, queue, kind, task_key, state, attempts, fence, updated_at, claimed_by, last_error from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ?
order by updated_at limit ?) t
union all select t.id, t.queue, t.kind, t.task_key, t.state, t.attempts, t.fence, coalesce(timestampdiff(microsecond, '1970-01-01', t.updated_at), -1), coalesce(rtrim(t.claimed_by), ''), coalesce(substr(t.last_error, 1, 500), ''), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1), 1 from (select id, queue, kind, task_key, state, attempts, fence, updated_at, claimed_by, last_error from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ?
order by updated_at limit ?) t
-- binds: queue[0], state[0], task_key[0], priority[0], kind[0], policy[0], attempts[0], limit, queue[1], state[1], task_key[1], priority[1], kind[1], policy[1], attempts[1], limit
