insert into `falldue_tasks` (queue, kind, updated_at, created_at, payload) values (?, ?, utc_timestamp(6), utc_timestamp(6), ?)
-- binds: queue, kind, payload
