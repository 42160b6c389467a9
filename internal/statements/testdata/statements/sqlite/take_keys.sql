insert into "falldue_uniques" as u (hash, task_id, token, was, held_until)
select s.hash, s.task_id, ?, s.was, ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (s.wait)) from (select column1 as hash, column2 as task_id, column3 as was, column4 as wait from (values (?, ?, ?, ?), (?, ?, ?, ?))) as s
where true
on conflict (hash) do update set task_id = excluded.task_id, token = excluded.token, was = excluded.was, held_until = excluded.held_until
where u.token = excluded.was
returning hash
-- binds: token, hash[0], task_id[0], was[0], wait[0], hash[1], task_id[1], was[1], wait[1]
