delete from "falldue_changes" as t using pg_catalog.unnest((select $1::bigint[])) as s (id)
where t.id = s.id
-- binds: id[]
