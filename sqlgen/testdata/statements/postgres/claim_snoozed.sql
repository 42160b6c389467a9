with turn as materialized (select $1::bigint = 0 or pg_try_advisory_xact_lock($1::bigint) or pg_try_advisory_xact_lock($1::bigint + 1) as taken),
due as materialized (select l.place, t.* from unnest($2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[]) with ordinality as l (state, priority, kind, policy, attempts, since, formula, place)
cross join lateral (select id, fence, updated_at as anchor, claimed_by as previous from "falldue_tasks"
where queue = $9 and state = l.state and priority = l.priority and kind = l.kind and policy = l.policy and attempts = l.attempts and updated_at >= (timestamptz 'epoch' + (l.since) * interval '1 microsecond') and updated_at <= (statement_timestamp() + (-(0)) * interval '1 microsecond')
order by updated_at limit $10 for update skip locked) t
where (select taken from turn) limit $10),
claimed as (update "falldue_tasks" t set first_attempted_at = case when t.attempts = 0 then statement_timestamp() else greatest(t.first_attempted_at, (timestamptz 'epoch' + (0) * interval '1 microsecond')) end, attempted_at = statement_timestamp(), attempts = least(t.attempts, 2147483646) + 1, fence = least(t.fence, 9223372036854775806) + 1, state = 'open', updated_at = (statement_timestamp() + ($11::bigint) * interval '1 microsecond'), claimed_by = $12
from due where t.id = due.id and t.fence = due.fence
returning due.place, t.id, t.fence, t.max_attempts, (date_part('epoch', least(greatest(due.anchor, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, (date_part('epoch', least(greatest(t.first_attempted_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, (date_part('epoch', least(greatest(t.created_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, (date_part('epoch', least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000)::bigint, due.previous, t.payload)
select * from claimed union all select 0, 0, 0, 0, 0, 0, 0, 0, '', null from turn where not taken
