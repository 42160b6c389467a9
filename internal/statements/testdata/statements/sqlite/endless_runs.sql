select id, coalesce(rtrim(claimed_by), '') from "falldue_tasks"
where state in ('open', 'snoozed') and claimed_by <> '' and updated_at > (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000
and (attempted_at <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?))) or updated_at > ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (?))) limit ?
-- binds: age, age, limit
