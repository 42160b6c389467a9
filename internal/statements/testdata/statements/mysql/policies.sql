select t.key, t.policy from `falldue_policies` t where (t.key) in ((?), (?))
-- binds: policy_key[0], policy_key[1]
