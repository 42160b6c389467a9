select table_rows, '' from information_schema.tables
where table_schema = database() and table_name = ?
-- binds: table
