insert into `falldue_policies` (`key`, policy, created_at) values (?, ?, utc_timestamp(6)) on duplicate key update created_at = created_at
-- binds: key, policy
