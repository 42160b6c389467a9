select state, task_key, priority, kind, policy, attempts, coalesce(timestampdiff(microsecond, '1970-01-01', min(updated_at)), -1), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1)
from `falldue_tasks`
where queue = ? and state in ('open', 'snoozed')
group by queue, state, task_key, priority, kind, policy, attempts
-- binds: queue
