update `falldue_workers` set seen_at = utc_timestamp(6), running = ?, done = ?, failed = ? where id = ?
-- binds: running, done, failed, id
