insert into "falldue_changes" (created_at, subject, what, value, ends_at, who, why)
values ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, ?, ?, ?, ?, ?, ?)
-- binds: subject, what, value, ends_at, who, why
