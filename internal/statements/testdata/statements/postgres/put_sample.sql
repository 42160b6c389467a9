update "falldue_sample" set sample = $1::text::json where id = $2::bigint
-- binds: sample, id
