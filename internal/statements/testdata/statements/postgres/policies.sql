select t.key, t.policy from pg_catalog.unnest((select $1::text[])) as s (policy_key) join "falldue_policies" t on t.key = s.policy_key
-- binds: policy_key[]
