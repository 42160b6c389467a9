insert into "falldue_permits" (name, n)
select s.name, s.n from unnest((select $1::text[]), (select $2::bigint[])) as s (name, n)
where true on conflict do nothing
-- binds: name[], n[]
