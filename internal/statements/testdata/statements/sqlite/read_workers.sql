select id, running, done, failed, recent, info, cast(started_at as integer), cast(seen_at as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer) from "falldue_workers"
order by started_at, id
-- binds: 
