select coalesce(timestampdiff(microsecond, '1970-01-01', at), -1), sample, coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) from `falldue_sample` where id = ?
-- binds: id
