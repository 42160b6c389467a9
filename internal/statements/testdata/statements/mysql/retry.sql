update `falldue_tasks`
set state = 'open', attempts = 0, updated_at = utc_timestamp(6)
where id = ? and state in ('dead', 'cancelled')
-- binds: id
