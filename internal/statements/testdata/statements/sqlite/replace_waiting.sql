update "falldue_tasks" as t
set fence = min(t.fence, 9223372036854775806) + 1, task_key = ?, payload = ?, metadata = ?, updated_at = coalesce(?, ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (?))), state = case when attempts = 0 then state else 'snoozed' end
where id = ? and fence = ? and state in ('open', 'snoozed') and claimed_by = ''
-- binds: key, payload, metadata, at, delay, id, fence
