delete from "falldue_uniques" as t where (t.hash, t.task_id) in (values (?, ?), (?, ?))
-- binds: hash[0], task_id[0], hash[1], task_id[1]
