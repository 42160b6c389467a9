insert into `falldue_tasks` (queue, kind, policy, task_key, priority, max_attempts, updated_at, created_at, payload, metadata) values (?, ?, ?, ?, ?, ?, coalesce(date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond), date_add(utc_timestamp(6), interval (?) microsecond)), utc_timestamp(6), ?, ?)
returning id
-- binds: queue, kind, policy, task_key, priority, max_attempts, at, delay, payload, metadata
