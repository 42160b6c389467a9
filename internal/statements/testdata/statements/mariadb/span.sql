select count(*), coalesce(max(id), 0) from (select id from `falldue_tasks`
where id > ? and queue = ? and state = ?
order by id limit ?) t
-- binds: after, queue, state, limit
