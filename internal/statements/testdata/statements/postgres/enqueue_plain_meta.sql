insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload, metadata) select queue, kind, statement_timestamp(), statement_timestamp(), payload::json, metadata::json
from (select queue, kind, payload, nullif(metadata, E'\x01'::text) as metadata from unnest((select $1::text[]), (select $2::text[]), (select $3::text[]), (select $4::text[])) as s (queue, kind, payload, metadata)) as s
where true
returning id
-- binds: queue[], kind[], payload[], metadata[]
