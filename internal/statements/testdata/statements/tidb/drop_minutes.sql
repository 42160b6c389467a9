delete from `falldue_minutes` where span = ? and at <= date_add(cast('1970-01-01' as datetime(6)), interval (?) microsecond) and at < date_add(utc_timestamp(6), interval (-(?)) microsecond)
-- binds: span, upto, keep
