select queue, kind, state, count(*), min(id), max(id), 0 from (select id, queue, kind, state from `falldue_tasks`
where id >= ? and id < ? order by id limit ?) t
group by queue, kind, state
union all select queue, kind, state, count(*), min(id), max(id), 1 from (select id, queue, kind, state from `falldue_tasks`
where id >= ? and id < ? order by id limit ?) t
group by queue, kind, state
-- binds: since[0], until[0], limit, since[1], until[1], limit
