select t.hash, t.token, t.task_id from `falldue_uniques` t where (t.hash) in ((?), (?)) order by t.hash
for update
-- binds: hash[0], hash[1]
