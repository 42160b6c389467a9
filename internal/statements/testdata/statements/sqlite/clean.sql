select id from "falldue_tasks"
where queue = ? and state = ? and updated_at <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?))) limit ?
-- binds: queue, state, keep, limit
