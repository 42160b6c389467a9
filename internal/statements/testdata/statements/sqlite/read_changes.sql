select subject, what, value, cast(ends_at as integer), who, why, id, cast(created_at as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer) from "falldue_changes"
where created_at > ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?)))
order by created_at, id
-- binds: back
