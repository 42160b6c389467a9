insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload) select $1::text, $2::text, statement_timestamp(), statement_timestamp(), payload::json
from pg_catalog.unnest((select $3::text[])) as s (payload)
where true
returning id
-- binds: queue, kind, payload[]
