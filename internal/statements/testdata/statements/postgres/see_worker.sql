update "falldue_workers" set seen_at = statement_timestamp(), running = $1::bigint, done = $2::bigint, failed = $3::bigint, recent = $4::json where id = $5
-- binds: running, done, failed, recent, id
