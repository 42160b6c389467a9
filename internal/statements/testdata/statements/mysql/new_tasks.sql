select id, queue, state, task_key, priority, kind, policy, attempts, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) from `falldue_tasks`
where id > ?
order by id limit ?
-- binds: after, limit
