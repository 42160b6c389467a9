select who, why, action, target, changed, id, (date_part('epoch'::text, least(greatest(created_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_audit" order by created_at desc, id desc limit $1
-- binds: limit
