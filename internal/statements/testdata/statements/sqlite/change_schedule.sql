update "falldue_schedules" set spec = ?, zone = ?, missed = ?, alone = ?, per_tick = ?, queue = ?, kind = ?, priority = ?, task_key = ?, max_attempts = ?, payload = ?, metadata = ?, hash = ?, defined_by = ?, defined_at = ?, started_at = ?, next_at = ?, asked_at = 0
where name = ? and hash = ? and next_at = ? and asked_at = ?
-- binds: spec, zone, missed, alone, per_tick, queue, kind, priority, task_key, max_attempts, payload, metadata, hash, defined_by, defined_at, started_at, next_at, name, was, was_next, was_asked
