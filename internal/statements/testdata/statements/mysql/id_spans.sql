select coalesce((select min(id) from `falldue_tasks` where id >= ? and id < ?), 0), coalesce((select max(id) from `falldue_tasks` where id >= ? and id < ?), -1) + 1, 0
union all select coalesce((select min(id) from `falldue_tasks` where id >= ? and id < ?), 0), coalesce((select max(id) from `falldue_tasks` where id >= ? and id < ?), -1) + 1, 1
-- binds: since[0], until[0], since[0], until[0], since[1], until[1], since[1], until[1]
