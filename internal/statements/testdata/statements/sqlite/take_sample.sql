update "falldue_sample" set at = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 where id = ? and (at <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?))) or at > ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (?)))
-- binds: id, age, age
