select cast(t.anchor as integer), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer), t.place from (select 0 as place, (select updated_at as anchor from "falldue_tasks"
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= ? order by updated_at limit 1) as anchor
union all select 1 as place, (select updated_at as anchor from "falldue_tasks"
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= ? order by updated_at limit 1) as anchor) t
where t.anchor is not null
-- binds: queue, state[0], task_key[0], priority[0], kind[0], policy[0], attempts[0], since[0], queue, state[1], task_key[1], priority[1], kind[1], policy[1], attempts[1], since[1]
