insert into "falldue_policies" ("key", policy, created_at) values (?, ?, (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000) on conflict do nothing
-- binds: key, policy
