update `falldue_tasks` as t
set fence = least(t.fence, 9223372036854775806) + 1, queue = ?, priority = ?, task_key = ?, unique_key = ?, payload = coalesce(?, payload), updated_at = coalesce(date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond), updated_at), state = case when ? is null or attempts = 0 then state else 'snoozed' end, claimed_by = ''
where id = ? and fence = ? and t.state in ('open', 'snoozed') and not (t.claimed_by <> '' and t.updated_at > utc_timestamp(6))
-- binds: queue, priority, key, unique, payload, at, at, id, fence
