delete from "falldue_changes" where what = 'cancel' and created_at <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?)))
-- binds: age
