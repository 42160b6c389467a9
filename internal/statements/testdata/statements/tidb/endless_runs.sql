select id, coalesce(rtrim(claimed_by), '') from `falldue_tasks`
where state in ('open', 'snoozed') and claimed_by <> '' and updated_at > utc_timestamp(6)
and (attempted_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond) or updated_at > date_add(utc_timestamp(6), interval (?) microsecond)) limit ?
-- binds: age, age, limit
