insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload) select queue, kind, statement_timestamp(), statement_timestamp(), payload::json
from unnest((select $1::text[]), (select $2::text[]), (select $3::text[])) as s (queue, kind, payload)
where true
returning id
-- binds: queue[], kind[], payload[]
