select id, running, done, failed, recent, info, coalesce(timestampdiff(microsecond, '1970-01-01', started_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', seen_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) from `falldue_workers`
order by started_at, id
-- binds: 
