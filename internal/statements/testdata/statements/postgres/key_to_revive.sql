select coalesce(unique_key, '') from "falldue_tasks" where id = $1 and state in ('dead', 'cancelled')
-- binds: id
