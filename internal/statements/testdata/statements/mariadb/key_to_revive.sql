select coalesce(unique_key, '') from `falldue_tasks` where id = ? and state in ('dead', 'cancelled')
-- binds: id
