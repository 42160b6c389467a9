update "falldue_permits" set fence = $1::bigint, token = $2::bigint
where id = $3::bigint and task_id = $4::bigint and fence = $5::bigint
-- binds: next, token, permit, id, fence
