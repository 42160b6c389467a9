update `falldue_tasks` as t
set fence = least(t.fence, 9223372036854775806) + 1, task_key = ?, payload = ?, metadata = ?, updated_at = coalesce(date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond), date_add(utc_timestamp(6), interval (?) microsecond)), state = case when attempts = 0 then state else 'snoozed' end
where id = ? and fence = ? and state in ('open', 'snoozed') and claimed_by = ''
-- binds: key, payload, metadata, at, delay, id, fence
