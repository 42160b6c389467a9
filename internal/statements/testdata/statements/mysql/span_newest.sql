select count(*), coalesce(min(id), 0) from (select id from `falldue_tasks`
where id < ? and kind = ?
order by id desc limit ?) t
-- binds: after, kind, limit
