update "falldue_permits" as t set taken_until = (t.taken_until + (-(?))) where (t.id) in (values (?), (?)) and t.token = ?
-- binds: wait, permit[0], permit[1], token
