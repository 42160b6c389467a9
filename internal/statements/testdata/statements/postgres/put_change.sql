insert into "falldue_changes" (created_at, subject, what, value, ends_at, who, why)
values (statement_timestamp(), $1, $2, $3, (timestamptz 'epoch' + ($4::bigint)::float8 * interval '1 microsecond'), $5, $6)
-- binds: subject, what, value, ends_at, who, why
