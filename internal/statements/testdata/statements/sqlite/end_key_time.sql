update "falldue_uniques" set held_until = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 where hash = ? and held_until > (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000
-- binds: hash
