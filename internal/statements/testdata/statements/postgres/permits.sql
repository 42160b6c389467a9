select t.id, t.name, t.n, t.task_id, t.fence, t.token, (date_part('epoch'::text, least(greatest(t.taken_until, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, case when k.fence = t.fence then k.state else '' end, coalesce(k.attempts, 0), case when k.fence = t.fence and k.claimed_by <> '' and k.updated_at > statement_timestamp() then 1 else 0 end from pg_catalog.unnest($1::text[]) as s (name)
cross join lateral (select * from "falldue_permits" where name = s.name offset 0) t
left join lateral (select state, attempts, fence, claimed_by, updated_at from "falldue_tasks" where id = t.task_id offset 0) k on true
-- binds: name[]
