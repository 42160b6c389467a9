delete from "falldue_changes" where what = 'cancel' and created_at <= (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond')
-- binds: age
