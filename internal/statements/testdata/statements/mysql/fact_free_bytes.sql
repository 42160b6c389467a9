select data_free, cast(data_length + index_length as char) from information_schema.tables
where table_schema = database() and table_name = ?
-- binds: table
