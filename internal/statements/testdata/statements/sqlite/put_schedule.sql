insert into "falldue_schedules" (name, spec, zone, missed, alone, queue, kind, priority, task_key, max_attempts, payload, hash, defined_by, started_at, next_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing
-- binds: name, spec, zone, missed, alone, queue, kind, priority, task_key, max_attempts, payload, hash, defined_by, started_at, next_at
