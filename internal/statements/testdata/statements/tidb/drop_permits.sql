delete t from `falldue_permits` t where (t.id) in ((?), (?)) and t.taken_until <= date_add(utc_timestamp(6), interval (-(?)) microsecond)
-- binds: task_id[0], task_id[1], keep
