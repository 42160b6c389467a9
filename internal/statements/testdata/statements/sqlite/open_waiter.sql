update "falldue_tasks" set state = 'open', updated_at = max(updated_at, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000) where id = ? and state = 'blocked'
-- binds: id
