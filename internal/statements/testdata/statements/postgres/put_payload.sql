update "falldue_tasks" set payload = $1::text::json where id = $2
-- binds: payload, id
