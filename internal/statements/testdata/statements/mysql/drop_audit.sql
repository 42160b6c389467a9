delete from `falldue_audit` where created_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond)
-- binds: age
