update "falldue_permits" set token = $1::bigint, taken_until = (statement_timestamp() + ($2::bigint)::float8 * interval '1 microsecond')
where id = $3::bigint and task_id = $4::bigint and fence = $5::bigint and token >= 0
-- binds: token, wait, permit, id, fence
