update "falldue_tasks" as t
set fence = least(t.fence, 9223372036854775806) + 1, queue = $1, priority = $2, task_key = $3, unique_key = $4::text, payload = coalesce($5::text::json, payload), updated_at = coalesce((timestamptz 'epoch' + ($6::bigint)::float8 * interval '1 microsecond'), updated_at), state = case when $6::bigint is null or attempts = 0 then state else 'snoozed' end, claimed_by = ''
where id = $7 and fence = $8 and t.state in ('open', 'snoozed') and not (t.claimed_by <> '' and t.updated_at > statement_timestamp())
-- binds: queue, priority, key, unique, payload, at, id, fence
