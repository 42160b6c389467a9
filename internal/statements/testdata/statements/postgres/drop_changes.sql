delete from "falldue_changes" as t using pg_catalog.unnest($1::bigint[]) as s (id)
where t.id = s.id
-- binds: id[]
