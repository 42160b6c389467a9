delete from "falldue_tasks" as t where (t.id) in (select * from (select value ->> 0 as task_id from json_each(?)) as s) and t.state in ('done', 'dead', 'cancelled')
