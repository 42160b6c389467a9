insert into "falldue_audit" (created_at, who, why, action, target, changed)
values ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, ?, ?, ?, ?, ?)
-- binds: who, why, action, target, changed
