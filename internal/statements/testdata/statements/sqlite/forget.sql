delete from "falldue_attempts" as t where (t.task_id) in (values (?), (?))
