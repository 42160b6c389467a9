select queue, kind, state, count(*), min(id), max(id) from (select id, queue, kind, state from `falldue_tasks`
where id >= ? and id < ? order by id limit ?) t
group by queue, kind, state
-- binds: since, until, limit
