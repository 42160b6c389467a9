select t."key", t.policy from "falldue_policies" t
where t."key" > $1
order by t."key" limit $2
-- binds: after, limit
