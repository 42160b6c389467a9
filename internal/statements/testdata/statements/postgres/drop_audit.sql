delete from "falldue_audit" where created_at <= (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond')
-- binds: age
