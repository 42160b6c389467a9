select 0, file from pragma_database_list where name = 'main'
-- binds: 
