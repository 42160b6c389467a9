select 1, '' where pg_catalog.has_function_privilege('pg_catalog.pg_ls_waldir()', 'execute')
-- binds: 
