update `falldue_sample` set sample = ? where id = 1
-- binds: sample
