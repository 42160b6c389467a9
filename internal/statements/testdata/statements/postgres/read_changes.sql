select subject, what, value, (date_part('epoch'::text, least(greatest(ends_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, who, why, id, (date_part('epoch'::text, least(greatest(created_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_changes"
where created_at > (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond')
order by created_at, id
-- binds: back
