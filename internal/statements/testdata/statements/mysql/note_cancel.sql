insert into `falldue_changes` (created_at, subject, what, value, ends_at, who, why)
select utc_timestamp(6), ?, 'cancel', cast(fence as char), date_add(cast('1970-01-01' as datetime(6)), interval (0) microsecond), ?, ? from `falldue_tasks`
where id = ? and claimed_by <> ''
-- binds: subject, who, why, id
