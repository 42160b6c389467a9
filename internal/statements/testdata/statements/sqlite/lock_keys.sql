select t.hash, t.token, t.task_id from "falldue_uniques" t where (t.hash) in (values (?), (?)) order by t.hash
-- binds: hash[0], hash[1]
