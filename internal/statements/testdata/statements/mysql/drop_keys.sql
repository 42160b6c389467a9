delete t from `falldue_uniques` t where (t.hash, t.token) in ((?, ?), (?, ?))
-- binds: hash[0], token[0], hash[1], token[1]
