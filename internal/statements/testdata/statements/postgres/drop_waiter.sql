delete from "falldue_flows" where task_id = $1
-- binds: id
