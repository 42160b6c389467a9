select p.task_id, case when exists (select 1 from "falldue_tasks" t where t.id = p.task_id) then 0 else 1 end
from (select distinct task_id from "falldue_steps" where task_id > $1 order by task_id limit $2) p
order by p.task_id
-- binds: after, limit
