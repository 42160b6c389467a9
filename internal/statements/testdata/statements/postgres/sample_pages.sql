select queue, kind, state, count(*) from "falldue_tasks"
where ctid = any (array(select ('(' || p::text || ',' || i::text || ')')::tid from pg_catalog.generate_series($1::bigint, $2::bigint, $3::bigint) p, pg_catalog.generate_series(1::bigint, $4::bigint) i))
group by queue, kind, state
-- binds: first, last, step, slots
