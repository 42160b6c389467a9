insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload) select queue, kind, statement_timestamp(), statement_timestamp(), payload::json
from unnest($1::text[], $2::text[], $3::text[]) as s (queue, kind, payload)
where true
returning id
-- binds: queue[], kind[], payload[]
