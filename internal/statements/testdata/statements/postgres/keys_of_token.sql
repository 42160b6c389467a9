select t.hash from pg_catalog.unnest((select $1::text[])) as s (hash) join "falldue_uniques" t on t.hash = s.hash and t.token = $2::bigint
-- binds: hash[], token
