delete from "falldue_minutes" where span = $1::bigint and at <= (timestamptz 'epoch' + ($2::bigint)::float8 * interval '1 microsecond') and at < (statement_timestamp() + (-($3::bigint))::float8 * interval '1 microsecond')
-- binds: span, upto, keep
