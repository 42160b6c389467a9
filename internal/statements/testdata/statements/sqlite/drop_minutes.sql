delete from "falldue_minutes" where span = ? and at <= ? and at < ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?)))
-- binds: span, upto, keep
