update "falldue_sample" set at = statement_timestamp() where id = 1 and (at <= (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond') or at > (statement_timestamp() + ($1::bigint)::float8 * interval '1 microsecond'))
-- binds: age
