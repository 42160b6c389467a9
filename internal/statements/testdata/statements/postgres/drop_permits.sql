delete from "falldue_permits" as t using pg_catalog.unnest((select $1::bigint[])) as s (task_id)
where t.id = s.task_id and t.taken_until <= (statement_timestamp() + (-($2::bigint))::float8 * interval '1 microsecond')
-- binds: task_id[], keep
