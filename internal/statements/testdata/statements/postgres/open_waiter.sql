update "falldue_tasks" set state = 'open', updated_at = greatest(updated_at, statement_timestamp()) where id = $1 and state = 'blocked'
-- binds: id
