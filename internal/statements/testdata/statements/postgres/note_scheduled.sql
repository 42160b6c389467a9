update "falldue_schedules" set last_task = $1, last_at = statement_timestamp() where name = $2
-- binds: task, name
