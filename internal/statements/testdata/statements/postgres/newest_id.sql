select id from "falldue_tasks"
order by id desc limit 1
-- binds: 
