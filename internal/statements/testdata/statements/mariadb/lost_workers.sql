select id from `falldue_workers` where seen_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond)
-- binds: age
