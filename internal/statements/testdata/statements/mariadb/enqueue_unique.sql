insert into `falldue_tasks` (unique_key, queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload)
values (?, ?, ?, ?, ?, ?, ?, coalesce(date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond), date_add(utc_timestamp(6), interval (?) microsecond)), utc_timestamp(6), ?), (?, ?, ?, ?, ?, ?, ?, coalesce(date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond), date_add(utc_timestamp(6), interval (?) microsecond)), utc_timestamp(6), ?)
returning id
-- binds: unique_key[0], queue[0], kind[0], policy[0], task_key[0], priority[0], max_attempts[0], at[0], delay[0], payload[0], unique_key[1], queue[1], kind[1], policy[1], task_key[1], priority[1], max_attempts[1], at[1], delay[1], payload[1]
