insert into "falldue_changes" (created_at, subject, what, value, ends_at, who, why)
select (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, ?, 'cancel', cast(fence as text), 0, ?, ? from "falldue_tasks"
where id = ? and claimed_by <> ''
-- binds: subject, who, why, id
