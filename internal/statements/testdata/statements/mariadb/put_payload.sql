update `falldue_tasks` set payload = ? where id = ?
-- binds: payload, id
