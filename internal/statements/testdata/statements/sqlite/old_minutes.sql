select cast(at as integer) from "falldue_minutes"
where span = ? and at < ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?))) order by at limit 1 offset ?
-- binds: span, keep, skip
