select id from "falldue_workers" where seen_at <= (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond')
-- binds: age
