select count(*) from (select 1 from "falldue_tasks"
where state in ('open', 'snoozed') and claimed_by <> '' and updated_at <= (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond') limit $2) t
-- binds: age, limit
