update "falldue_schedules" set paused = ?, next_at = ?
where name = ? and paused = ? and next_at = ?
-- binds: paused, next, name, was_paused, was_next
