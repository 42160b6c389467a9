select queue, state, task_key, priority, kind, policy, attempts, coalesce(timestampdiff(microsecond, '1970-01-01', min(updated_at)), -1), coalesce(timestampdiff(microsecond, '1970-01-01', max(updated_at)), -1) + 1 from `falldue_tasks`
group by queue, state, task_key, priority, kind, policy, attempts limit ?
-- binds: limit
