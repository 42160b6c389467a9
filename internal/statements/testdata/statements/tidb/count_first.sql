select count(*) from (select 1 from `falldue_tasks` limit ?) t
-- binds: limit
