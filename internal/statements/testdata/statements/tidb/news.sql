select coalesce((select id from `falldue_tasks` order by id desc limit 1), 0) as task,
coalesce((select cast(sum(id) as signed) from `falldue_changes` where created_at > date_add(utc_timestamp(6), interval (-(?)) microsecond)), 0) as changes
-- binds: back
