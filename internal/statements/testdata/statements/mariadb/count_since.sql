select count(*), 0 from (select 1 from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond) limit ?) t
union all select count(*), 1 from (select 1 from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond) limit ?) t
-- binds: queue[0], state[0], task_key[0], priority[0], kind[0], policy[0], attempts[0], wait[0], most[0], queue[1], state[1], task_key[1], priority[1], kind[1], policy[1], attempts[1], wait[1], most[1]
