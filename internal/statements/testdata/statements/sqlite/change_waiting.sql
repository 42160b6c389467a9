update "falldue_tasks" as t
set fence = min(t.fence, 9223372036854775806) + 1, queue = ?, priority = ?, task_key = ?, unique_key = ?, payload = coalesce(?, payload), updated_at = coalesce(?, updated_at), state = case when ? is null or attempts = 0 then state else 'snoozed' end, claimed_by = ''
where id = ? and fence = ? and t.state in ('open', 'snoozed') and not (t.claimed_by <> '' and t.updated_at > (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000)
-- binds: queue, priority, key, unique, payload, at, at, id, fence
