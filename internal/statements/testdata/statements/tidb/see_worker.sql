update `falldue_workers` set seen_at = utc_timestamp(6), running = ?, done = ?, failed = ?, recent = ? where id = ?
-- binds: running, done, failed, recent, id
