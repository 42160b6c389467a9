update `falldue_uniques` set held_until = utc_timestamp(6) where hash = ? and held_until > utc_timestamp(6)
-- binds: hash
