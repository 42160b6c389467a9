select who, why, action, target, changed, id, coalesce(timestampdiff(microsecond, '1970-01-01', created_at), -1) from `falldue_audit` order by created_at desc, id desc limit ?
-- binds: limit
