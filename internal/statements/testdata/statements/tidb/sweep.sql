select * from (select queue, state, task_key, priority, kind, policy, attempts, coalesce(timestampdiff(microsecond, '1970-01-01', min(updated_at)), -1) as anchor, coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) as clock from `falldue_tasks`
where queue in ((?), (?)) and state in ('open', 'snoozed')
group by queue, state, task_key, priority, kind, policy, attempts) n limit ?
-- binds: queue[0], queue[1], page
