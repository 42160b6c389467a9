select subject, what, value, coalesce(timestampdiff(microsecond, '1970-01-01', ends_at), -1), who, why, id, coalesce(timestampdiff(microsecond, '1970-01-01', created_at), -1), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) from `falldue_changes`
where created_at > date_add(utc_timestamp(6), interval (-(?)) microsecond)
order by created_at, id
-- binds: back
