delete from `falldue_changes` where what = 'cancel' and created_at <= date_add(utc_timestamp(6), interval (-(?)) microsecond)
-- binds: age
