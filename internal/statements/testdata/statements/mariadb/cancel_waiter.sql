update `falldue_tasks` set state = 'cancelled', updated_at = utc_timestamp(6) where id = ? and state = 'blocked'
-- binds: id
