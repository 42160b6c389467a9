update `falldue_permits` as t set taken_until = greatest(t.taken_until, date_add(utc_timestamp(6), interval (?) microsecond)) where (t.id) in ((?), (?)) and t.token = ?
-- binds: wait, permit[0], permit[1], token
