select coalesce(timestampdiff(microsecond, '1970-01-01', at), -1) from `falldue_minutes`
where span = ? and at < date_add(utc_timestamp(6), interval (-(?)) microsecond) order by at limit 1 offset ?
-- binds: span, keep, skip
