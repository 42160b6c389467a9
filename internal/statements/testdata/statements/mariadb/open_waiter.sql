update `falldue_tasks` set state = 'open', updated_at = greatest(updated_at, utc_timestamp(6)) where id = ? and state = 'blocked'
-- binds: id
