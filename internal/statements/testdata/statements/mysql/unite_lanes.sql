select l.place, t.id, t.fence, t.max_attempts, coalesce(timestampdiff(microsecond, '1970-01-01', t.updated_at), -1), case when t.attempts <> 0 then coalesce(timestampdiff(microsecond, '1970-01-01', t.first_attempted_at), -1) end, case when t.created_at <> t.updated_at then coalesce(timestampdiff(microsecond, '1970-01-01', t.created_at), -1) end, coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1), nullif(rtrim(t.claimed_by), ''), t.payload, t.metadata from ((select 1 as place, id from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) and updated_at <= utc_timestamp(6)
order by updated_at limit ? for update skip locked)
union all (select 2 as place, id from `falldue_tasks`
where queue = ? and state = ? and task_key = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) and updated_at <= utc_timestamp(6)
order by updated_at limit ? for update skip locked)) as l
straight_join `falldue_tasks` t on t.id = l.id for update skip locked
-- binds: queue, state[0], task_key[0], priority[0], kind[0], policy[0], attempts[0], since[0], room[0], queue, state[1], task_key[1], priority[1], kind[1], policy[1], attempts[1], since[1], room[1]
