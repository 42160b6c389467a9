insert into "falldue_policies" ("key", policy, created_at) values ($1, $2, statement_timestamp()) on conflict do nothing
-- binds: key, policy
