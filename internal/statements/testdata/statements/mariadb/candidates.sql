select id, fence, coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) from `falldue_tasks`
where queue = ? and state = ? and priority = ? and kind = ? and policy = ? and attempts = ? and updated_at >= date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) and updated_at <= date_add(utc_timestamp(6), interval (-(case when ? between 1 and 2147483647 then cast(floor(55020e0 * atan(power((? + 0e0), 3e0) / 15e0) * 1000000e0 + 0.5e0) as signed) when ? > 2147483647 then 86425213900 else 0 end)) microsecond) and (updated_at > date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) or id > ?)
order by updated_at, id limit ?
-- binds: queue, state, priority, kind, policy, attempts, since, attempts, attempts, attempts, since, after, limit
