select t.hash, t.token, case when t.held_until <= (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond') and (k.id is null or k.state in ('done', 'dead', 'cancelled')) then 1 else 0 end from "falldue_uniques" t left join "falldue_tasks" k on k.id = t.task_id
where t.hash > $2::text order by t.hash limit $3
-- binds: keep, after, limit
