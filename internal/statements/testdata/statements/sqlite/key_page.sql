select t.hash, t.token, case when t.held_until <= ((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 + (-(?))) and (k.id is null or k.state in ('done', 'dead', 'cancelled')) then 1 else 0 end from "falldue_uniques" t left join "falldue_tasks" k on k.id = t.task_id
where t.hash > ? order by t.hash limit ?
-- binds: keep, after, limit
