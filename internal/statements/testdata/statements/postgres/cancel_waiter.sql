update "falldue_tasks" set state = 'cancelled', updated_at = statement_timestamp() where id = $1 and state = 'blocked'
-- binds: id
