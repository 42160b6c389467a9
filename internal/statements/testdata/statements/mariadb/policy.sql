select policy from `falldue_policies`
where `key` = ?
-- binds: key
