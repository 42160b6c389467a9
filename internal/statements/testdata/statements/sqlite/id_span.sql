select coalesce((select min(id) from "falldue_tasks"), 0), coalesce((select max(id) from "falldue_tasks"), -1) + 1
-- binds: 
