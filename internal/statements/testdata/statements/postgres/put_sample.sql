update "falldue_sample" set sample = $1::text::json where id = 1
-- binds: sample
