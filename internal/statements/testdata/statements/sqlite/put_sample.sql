update "falldue_sample" set sample = ? where id = ?
-- binds: sample, id
