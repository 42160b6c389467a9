select t.`key`, t.policy from `falldue_policies` t
where t.`key` > ?
order by t.`key` limit ?
-- binds: after, limit
