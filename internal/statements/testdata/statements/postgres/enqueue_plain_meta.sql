insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload, meta) select queue, kind, statement_timestamp(), statement_timestamp(), payload::json, meta::json
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as s (queue, kind, payload, meta)
where true
returning id
-- binds: queue[], kind[], payload[], meta[]
