delete from "falldue_permits" as t where (t.id) in (values (?), (?)) and t.taken_until <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?)))
-- binds: task_id[0], task_id[1], keep
