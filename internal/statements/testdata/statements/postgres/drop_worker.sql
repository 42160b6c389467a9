delete from "falldue_workers" where id = $1
-- binds: id
