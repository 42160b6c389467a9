update "falldue_sample" set at = statement_timestamp() where id = $1::bigint and (at <= (statement_timestamp() + (-($2::bigint))::float8 * interval '1 microsecond') or at > (statement_timestamp() + ($2::bigint)::float8 * interval '1 microsecond'))
-- binds: id, age
