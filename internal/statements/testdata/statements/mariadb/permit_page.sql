select t.id, case when t.taken_until <= date_add(utc_timestamp(6), interval (-(?)) microsecond) and coalesce(k.state, 'done') in ('done', 'cancelled') then 1 else 0 end from `falldue_permits` t left join `falldue_tasks` k on k.id = t.task_id
where t.id > ? order by t.id limit ?
-- binds: keep, after, limit
