update "falldue_uniques" set held_until = statement_timestamp() where hash = $1::text and held_until > statement_timestamp()
-- binds: hash
