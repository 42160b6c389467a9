select who, why, action, target, changed, id, cast(created_at as integer) from "falldue_audit" order by created_at desc, id desc limit ?
-- binds: limit
