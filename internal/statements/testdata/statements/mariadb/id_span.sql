select coalesce((select min(id) from `falldue_tasks` where id >= ? and id < ?), 0), coalesce((select max(id) from `falldue_tasks` where id >= ? and id < ?), -1) + 1
-- binds: since, until, since, until
