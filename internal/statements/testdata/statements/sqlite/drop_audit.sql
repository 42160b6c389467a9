delete from "falldue_audit" where created_at <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?)))
-- binds: age
