update "falldue_permits" set token = ?, taken_until = ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (?))
where id = ? and task_id = ? and fence = ? and token >= 0
-- binds: token, wait, permit, id, fence
