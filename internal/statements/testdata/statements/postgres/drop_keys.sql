delete from "falldue_uniques" as t using unnest($1::text[], $2::bigint[]) as s (hash, token)
where t.hash = s.hash and t.token = s.token
-- binds: hash[], token[]
