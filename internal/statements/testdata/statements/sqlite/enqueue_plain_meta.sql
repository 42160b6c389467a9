insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload, metadata) select queue, kind, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, payload, metadata
from (select column1 as queue, column2 as kind, column3 as payload, column4 as metadata from (values (?, ?, ?, ?), (?, ?, ?, ?))) as s
where true
returning id
-- binds: queue[0], kind[0], payload[0], metadata[0], queue[1], kind[1], payload[1], metadata[1]
