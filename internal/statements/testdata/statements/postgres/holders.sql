select t.hash, t.token, t.task_id, (date_part('epoch'::text, least(greatest(t.held_until, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, coalesce(k.fence, 0), case when k.state not in ('done', 'dead', 'cancelled') then 1 else 0 end, case when k.state not in ('done', 'dead', 'cancelled') and k.claimed_by = '' then 1 else 0 end from pg_catalog.unnest((select $1::text[])) as s (hash)
cross join lateral (select * from "falldue_uniques" where hash = s.hash offset 0) t
left join lateral (select state, fence, claimed_by from "falldue_tasks" where id = t.task_id offset 0) k on true
-- binds: hash[]
