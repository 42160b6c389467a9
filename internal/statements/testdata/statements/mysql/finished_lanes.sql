select state, task_key, priority, kind, policy, attempts, anchor, clock from ((select 5 as same, state, task_key, priority, kind, policy, attempts, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) as anchor, coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) as clock from `falldue_tasks` where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts > ?
order by attempts, updated_at limit 1)
union all (select 4 as same, state, task_key, priority, kind, policy, attempts, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) as anchor, coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) as clock from `falldue_tasks` where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy > ?
order by policy, attempts, updated_at limit 1)
union all (select 3 as same, state, task_key, priority, kind, policy, attempts, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) as anchor, coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) as clock from `falldue_tasks` where queue = ? and state = ? and task_key = ? and priority = ? and kind > ?
order by kind, policy, attempts, updated_at limit 1)
union all (select 2 as same, state, task_key, priority, kind, policy, attempts, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) as anchor, coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) as clock from `falldue_tasks` where queue = ? and state = ? and task_key = ? and priority > ?
order by priority, kind, policy, attempts, updated_at limit 1)
union all (select 1 as same, state, task_key, priority, kind, policy, attempts, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) as anchor, coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) as clock from `falldue_tasks` where queue = ? and state = ? and task_key > ?
order by task_key, priority, kind, policy, attempts, updated_at limit 1)) n
order by same desc limit 1
-- binds: queue, state, task_key, priority, kind, policy, attempts, queue, state, task_key, priority, kind, policy, queue, state, task_key, priority, kind, queue, state, task_key, priority, queue, state, task_key
