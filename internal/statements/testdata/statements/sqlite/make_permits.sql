insert into "falldue_permits" (name, n)
select s.name, s.n from (select column1 as name, column2 as n from (values (?, ?), (?, ?))) as s
where true on conflict do nothing
-- binds: name[0], n[0], name[1], n[1]
