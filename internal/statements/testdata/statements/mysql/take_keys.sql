insert into `falldue_uniques` (hash, task_id, token, was, held_until)
values (?, ?, ?, ?, date_add(utc_timestamp(6), interval (?) microsecond)), (?, ?, ?, ?, date_add(utc_timestamp(6), interval (?) microsecond))
on duplicate key update task_id = case when token = values(was) then values(task_id) else task_id end, was = case when token = values(was) then values(was) else was end, held_until = case when token = values(was) then values(held_until) else held_until end, token = case when token = values(was) then values(token) else token end
-- binds: hash[0], task_id[0], token, was[0], wait[0], hash[1], task_id[1], token, was[1], wait[1]
