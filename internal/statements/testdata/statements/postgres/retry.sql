update "falldue_tasks"
set state = 'open', attempts = 0, updated_at = statement_timestamp()
where id = $1 and state in ('dead', 'cancelled')
-- binds: id
