delete from "falldue_attempts" as t where (t.task_id) in (select * from (select value ->> 0 as task_id from json_each(?)) as s)
