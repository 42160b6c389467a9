select t.id, t.queue, t.kind, t.task_key, t.state, t.attempts, t.fence, coalesce(timestampdiff(microsecond, '1970-01-01', t.updated_at), -1), coalesce(rtrim(t.claimed_by), ''), coalesce(substr(t.last_error, 1, 500), ''), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) from `falldue_tasks` t
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ?
order by updated_at desc limit ?
-- binds: queue, state, task_key, priority, kind, policy, attempts, limit
