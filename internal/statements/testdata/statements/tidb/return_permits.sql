update `falldue_permits` as t set taken_until = date_add(t.taken_until, interval (-(?)) microsecond) where (t.id) in ((?), (?)) and t.token = ?
-- binds: wait, permit[0], permit[1], token
