insert into `falldue_workers` (id, started_at, seen_at, running, done, failed, recent, info)
values (?, utc_timestamp(6), utc_timestamp(6), ?, ?, ?, ?, ?) on duplicate key update seen_at = values(seen_at), running = values(running), done = values(done), failed = values(failed), recent = values(recent), info = values(info)
-- binds: id, running, done, failed, recent, info
