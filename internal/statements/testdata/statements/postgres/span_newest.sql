select count(*), coalesce(min(id), 0) from (select id from "falldue_tasks"
where id < $1 and kind = $2
order by id desc limit $3) t
-- binds: after, kind, limit
