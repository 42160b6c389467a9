insert into "falldue_workers" (id, started_at, seen_at, running, done, failed, recent, info)
values (?, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, ?, ?, ?, ?, ?) on conflict (id) do update set seen_at = excluded.seen_at, running = excluded.running, done = excluded.done, failed = excluded.failed, recent = excluded.recent, info = excluded.info
-- binds: id, running, done, failed, recent, info
