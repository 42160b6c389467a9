update `falldue_permits` set token = ?, taken_until = date_add(utc_timestamp(6), interval (?) microsecond)
where id = ? and task_id = ? and fence = ? and token >= 0
-- binds: token, wait, permit, id, fence
