insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload, metadata) select queue, kind, statement_timestamp(), statement_timestamp(), payload::json, metadata::json
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as s (queue, kind, payload, metadata)
where true
returning id
-- binds: queue[], kind[], payload[], metadata[]
