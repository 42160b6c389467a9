select p.task_id from "falldue_progress" p
where not exists (select 1 from "falldue_tasks" t where t.id = p.task_id) limit ?
-- binds: limit
