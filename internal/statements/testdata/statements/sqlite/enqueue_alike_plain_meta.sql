insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload, metadata) select ?, ?, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, payload, ?
from (select column1 as payload from (values (?), (?))) as s
where true
returning id
-- binds: queue, kind, metadata, payload[0], payload[1]
