update "falldue_workers" set seen_at = statement_timestamp(), running = $1::bigint, done = $2::bigint, failed = $3::bigint where id = $4
-- binds: running, done, failed, id
