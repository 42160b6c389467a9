select id, queue, state, task_key, priority, kind, policy, attempts, max_attempts, fence, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', created_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', first_attempted_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', attempted_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1), coalesce(rtrim(claimed_by), ''), last_error, payload, result, metadata from `falldue_tasks`
where id < ? and id >= ?
order by id desc limit ?
-- binds: after, upto, limit
