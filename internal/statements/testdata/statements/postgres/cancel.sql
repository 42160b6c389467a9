update "falldue_tasks"
set state = 'cancelled', claimed_by = '', updated_at = statement_timestamp()
where id = $1 and state in ('open', 'snoozed')
-- binds: id
