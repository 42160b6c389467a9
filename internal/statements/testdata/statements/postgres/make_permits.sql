insert into "falldue_permits" (name, n)
select s.name, s.n from unnest($1::text[], $2::bigint[]) as s (name, n)
where true on conflict do nothing
-- binds: name[], n[]
