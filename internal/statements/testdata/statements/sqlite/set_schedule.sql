update "falldue_schedules" set paused = ?, paused_at = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000, paused_by = ?, paused_why = ?, next_at = ?
where name = ? and paused = ? and next_at = ?
-- binds: paused, paused_by, paused_why, next, name, was_paused, was_next
