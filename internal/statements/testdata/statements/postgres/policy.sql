select policy from "falldue_policies"
where "key" = $1
-- binds: key
