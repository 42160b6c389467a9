delete from "falldue_schedules" where name = $1
-- binds: name
