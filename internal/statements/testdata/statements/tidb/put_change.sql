insert into `falldue_changes` (created_at, subject, what, value, ends_at, who, why)
values (utc_timestamp(6), ?, ?, ?, date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond), ?, ?)
-- binds: subject, what, value, ends_at, who, why
