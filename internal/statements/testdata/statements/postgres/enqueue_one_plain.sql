insert into "falldue_tasks" (queue, kind, updated_at, created_at, payload) values ($1, $2, statement_timestamp(), statement_timestamp(), $3)
returning id
-- binds: queue, kind, payload
