delete from `falldue_workers` where id = ?
-- binds: id
