update "falldue_permits" set taken_until = statement_timestamp()
where id = $1::bigint and task_id = $2::bigint and fence = $3::bigint and token < 0
-- binds: permit, id, fence
