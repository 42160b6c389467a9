delete t from `falldue_uniques` t where (t.hash, t.task_id) in ((?, ?), (?, ?))
-- binds: hash[0], task_id[0], hash[1], task_id[1]
