select count(*) from (select 1 from `falldue_tasks`
where state in ('open', 'snoozed') and claimed_by <> '' and updated_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond) limit ?) t
-- binds: age, limit
