with recursive found (queue, place) as (select (select min(queue) from "falldue_tasks" where queue > ?), 1
union all
select (select min(queue) from "falldue_tasks" where queue > f.queue), f.place + 1 from found f where f.queue is not null and f.place < ?)
select queue from found where queue is not null
-- binds: queue, limit
