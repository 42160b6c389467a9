insert into `falldue_audit` (created_at, who, why, action, target, changed)
values (utc_timestamp(6), ?, ?, ?, ?, ?)
-- binds: who, why, action, target, changed
