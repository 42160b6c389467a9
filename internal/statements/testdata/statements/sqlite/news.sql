select coalesce((select id from "falldue_tasks" order by id desc limit 1), 0) as task,
coalesce((select cast(sum(id) as integer) from "falldue_changes" where created_at > ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?)))), 0) as changes
-- binds: back
