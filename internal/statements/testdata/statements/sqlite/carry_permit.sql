update "falldue_permits" set fence = ?, token = ?
where id = ? and task_id = ? and fence = ?
-- binds: next, token, permit, id, fence
