insert into "falldue_workers" (id, started_at, seen_at, running, done, failed, recent, info)
values ($1, statement_timestamp(), statement_timestamp(), $2, $3, $4, $5::json, $6::json) on conflict (id) do update set seen_at = excluded.seen_at, running = excluded.running, done = excluded.done, failed = excluded.failed, recent = excluded.recent, info = excluded.info
-- binds: id, running, done, failed, recent, info
