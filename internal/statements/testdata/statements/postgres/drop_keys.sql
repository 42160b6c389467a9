delete from "falldue_uniques" as t using unnest((select $1::text[]), (select $2::bigint[])) as s (hash, token)
where t.hash = s.hash and t.token = s.token
-- binds: hash[], token[]
