select id from "falldue_tasks"
where queue = $1 and state = $2 and updated_at <= (statement_timestamp() + (-($3::bigint)) * interval '1 microsecond') limit $4 for update skip locked
