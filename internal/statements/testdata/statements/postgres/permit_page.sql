select t.id, case when t.taken_until <= (statement_timestamp() + (-($1::bigint))::float8 * interval '1 microsecond') and coalesce(k.state, 'done') in ('done', 'cancelled') then 1 else 0 end from "falldue_permits" t left join "falldue_tasks" k on k.id = t.task_id
where t.id > $2::bigint order by t.id limit $3
-- binds: keep, after, limit
