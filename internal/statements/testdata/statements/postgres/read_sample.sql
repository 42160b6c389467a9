select (date_part('epoch'::text, least(greatest(at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, sample, (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_sample" where id = $1::bigint
-- binds: id
