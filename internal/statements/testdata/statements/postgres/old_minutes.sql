select (date_part('epoch'::text, least(greatest(at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_minutes"
where span = $1::bigint and at < (statement_timestamp() + (-($2::bigint))::float8 * interval '1 microsecond') order by at limit 1 offset $3
-- binds: span, keep, skip
