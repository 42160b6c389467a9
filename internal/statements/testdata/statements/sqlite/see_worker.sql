update "falldue_workers" set seen_at = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, running = ?, done = ?, failed = ?, recent = ? where id = ?
-- binds: running, done, failed, recent, id
