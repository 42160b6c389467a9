select id from `falldue_tasks`
where queue = ? and state = ? and updated_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond) limit ? for update skip locked
-- binds: queue, state, keep, limit
