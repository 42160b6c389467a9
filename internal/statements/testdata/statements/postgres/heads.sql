select l.state, l.priority, l.kind, l.policy, l.attempts, (date_part('epoch'::text, least(greatest(t.updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) as l (state, priority, kind, policy, attempts, since)
cross join lateral (select updated_at from "falldue_tasks"
where (queue || ' ' || state || ' ' || cast(priority as text) || ' ' || kind || ' ' || policy || ' ' || cast(attempts as text)) = ($7::text || ' ' || l.state || ' ' || cast(l.priority as text) || ' ' || l.kind || ' ' || l.policy || ' ' || cast(l.attempts as text)) and updated_at >= (timestamptz 'epoch' + (l.since)::float8 * interval '1 microsecond')
order by updated_at limit 1) t
-- binds: state[], priority[], kind[], policy[], attempts[], since[], queue
