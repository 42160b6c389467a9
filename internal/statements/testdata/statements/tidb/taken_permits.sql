select t.id from `falldue_permits` t where (t.id) in ((?), (?)) and t.token = ?
-- binds: permit[0], permit[1], token
