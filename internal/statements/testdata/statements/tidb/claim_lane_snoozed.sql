select 1, id, fence, max_attempts, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', case when attempts = 0 then utc_timestamp(6) else first_attempted_at end), -1), coalesce(timestampdiff(microsecond, '1970-01-01', created_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1), coalesce(rtrim(claimed_by), ''), payload, meta from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) and updated_at <= utc_timestamp(6)
order by updated_at limit ? for update
-- binds: queue, state, task_key, priority, kind, policy, attempts, since, limit
