insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload, metadata) select $1::text, $2::text, statement_timestamp(), statement_timestamp(), payload::json, $3::text::json
from pg_catalog.unnest((select $4::text[])) as s (payload)
where true
returning id
-- binds: queue, kind, metadata, payload[]
