select t.name, t.hash, coalesce(timestampdiff(microsecond, '1970-01-01', t.next_at), -1), t.last_task from `falldue_schedules` t
where (t.name) in ((?), (?)) and t.paused = 0 and t.next_at <= utc_timestamp(6) for update
-- binds: name[0], name[1]
