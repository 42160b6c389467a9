select coalesce((select id from "falldue_tasks" order by id desc limit 1), 0) as task,
coalesce((select sum(id)::bigint from "falldue_changes" where created_at > (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond')), 0) as changes
-- binds: back
