select id, coalesce(rtrim(claimed_by), '') from "falldue_tasks"
where state in ('open', 'snoozed') and claimed_by <> '' and updated_at > statement_timestamp()
and (attempted_at <= (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond') or updated_at > (statement_timestamp() + ($1::bigint)::float8 * interval '1 microsecond')) limit $2
-- binds: age, limit
