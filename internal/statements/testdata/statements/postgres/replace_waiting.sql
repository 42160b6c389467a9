update "falldue_tasks" as t
set fence = least(t.fence, 9223372036854775806) + 1, task_key = $1, payload = $2::text::json, metadata = $3::text::json, updated_at = coalesce((timestamptz 'epoch' + ($4::bigint)::float8 * interval '1 microsecond'), (statement_timestamp() + ($5::bigint)::float8 * interval '1 microsecond')), state = case when attempts = 0 then state else 'snoozed' end
where id = $6 and fence = $7 and state in ('open', 'snoozed') and claimed_by = ''
-- binds: key, payload, metadata, at, delay, id, fence
