update `falldue_sample` set at = utc_timestamp(6) where id = ? and (at <= date_add(utc_timestamp(6), interval (-(?)) microsecond) or at > date_add(utc_timestamp(6), interval (?) microsecond))
-- binds: id, age, age
