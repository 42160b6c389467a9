insert into "falldue_audit" (created_at, who, why, action, target, changed)
values (statement_timestamp(), $1, $2, $3, $4, $5)
-- binds: who, why, action, target, changed
