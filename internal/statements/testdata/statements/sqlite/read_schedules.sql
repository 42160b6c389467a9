select t.name, t.spec, t.zone, t.missed, t.alone, t.per_tick, t.queue, t.kind, t.priority, t.task_key, t.max_attempts, t.payload, t.meta, t.hash, t.defined_by, cast(t.defined_at as integer), cast(t.started_at as integer), cast(t.next_at as integer), cast(t.last_at as integer), t.last_task, t.paused, case when k.state not in ('done', 'dead', 'cancelled') then 1 else 0 end, cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer) from "falldue_schedules" t left join "falldue_tasks" k on k.id = t.last_task
order by t.name
-- binds: 
