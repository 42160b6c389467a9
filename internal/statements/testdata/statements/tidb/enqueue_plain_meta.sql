insert into `falldue_tasks` (queue, kind, updated_at, created_at, payload, metadata)
values (?, ?, utc_timestamp(6), utc_timestamp(6), ?, ?), (?, ?, utc_timestamp(6), utc_timestamp(6), ?, ?)
-- binds: queue[0], kind[0], payload[0], metadata[0], queue[1], kind[1], payload[1], metadata[1]
