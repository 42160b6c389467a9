insert into "falldue_uniques" as u (hash, task_id, token, was, held_until)
select s.hash, s.task_id, $1::bigint, s.was, (statement_timestamp() + (s.wait)::float8 * interval '1 microsecond') from unnest((select $2::text[]), (select $3::bigint[]), (select $4::bigint[]), (select $5::bigint[])) as s (hash, task_id, was, wait)
where true
on conflict (hash) do update set task_id = excluded.task_id, token = excluded.token, was = excluded.was, held_until = excluded.held_until
where u.token = excluded.was
returning hash
-- binds: token, hash[], task_id[], was[], wait[]
