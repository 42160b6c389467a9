delete t from `falldue_changes` t where (t.id) in ((?), (?))
-- binds: id[0], id[1]
