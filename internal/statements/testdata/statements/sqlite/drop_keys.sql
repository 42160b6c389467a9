delete from "falldue_uniques" as t where (t.hash, t.token) in (values (?, ?), (?, ?))
-- binds: hash[0], token[0], hash[1], token[1]
