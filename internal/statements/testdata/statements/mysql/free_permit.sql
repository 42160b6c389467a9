update `falldue_permits` set taken_until = utc_timestamp(6)
where id = ? and task_id = ? and fence = ? and token < 0
-- binds: permit, id, fence
