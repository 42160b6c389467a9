select t.hash from "falldue_uniques" t where (t.hash) in (values (?), (?)) and t.token = ?
-- binds: hash[0], hash[1], token
