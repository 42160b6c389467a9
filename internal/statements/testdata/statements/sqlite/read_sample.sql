select cast(at as integer), sample, cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer) from "falldue_sample" where id = ?
-- binds: id
