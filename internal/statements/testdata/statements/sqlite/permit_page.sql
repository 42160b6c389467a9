select t.id, case when t.taken_until <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?))) and coalesce(k.state, 'done') in ('done', 'cancelled') then 1 else 0 end from "falldue_permits" t left join "falldue_tasks" k on k.id = t.task_id
where t.id > ? order by t.id limit ?
-- binds: keep, after, limit
