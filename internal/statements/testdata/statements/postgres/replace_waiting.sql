update "falldue_tasks"
set payload = $1::text::json, updated_at = coalesce((timestamptz 'epoch' + ($2::bigint)::float8 * interval '1 microsecond'), (statement_timestamp() + ($3::bigint)::float8 * interval '1 microsecond')), state = case when attempts = 0 then state else 'snoozed' end
where id = $4 and fence = $5 and state in ('open', 'snoozed') and claimed_by = ''
-- binds: payload, at, delay, id, fence
