select string_agg(nextval((select pg_get_serial_sequence($1, 'id')::regclass))::text, ' '::text), (date_part('epoch'::text, least(greatest(statement_timestamp(), '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint
from (select generate_series(1::bigint, $2::bigint)) as s
-- binds: table, rows
