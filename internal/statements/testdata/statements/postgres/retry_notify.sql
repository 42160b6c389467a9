update "falldue_tasks"
set state = 'open', attempts = 0, updated_at = statement_timestamp()
where id = $1 and state in ('dead', 'cancelled')
returning pg_notify($2, queue)
-- binds: id, channel
