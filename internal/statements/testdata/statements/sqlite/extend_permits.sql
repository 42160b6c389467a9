update "falldue_permits" as t set taken_until = max(t.taken_until, ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (?))) where (t.id) in (values (?), (?)) and t.token = ?
-- binds: wait, permit[0], permit[1], token
