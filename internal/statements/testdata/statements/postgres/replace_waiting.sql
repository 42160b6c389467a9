update "falldue_tasks"
set payload = $1::text::json, meta = $2::text::json, updated_at = coalesce((timestamptz 'epoch' + ($3::bigint)::float8 * interval '1 microsecond'), (statement_timestamp() + ($4::bigint)::float8 * interval '1 microsecond')), state = case when attempts = 0 then state else 'snoozed' end
where id = $5 and fence = $6 and state in ('open', 'snoozed') and claimed_by = ''
-- binds: payload, meta, at, delay, id, fence
