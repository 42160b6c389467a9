select count(*) from pg_index i join pg_class c on c.oid = i.indexrelid
where i.indrelid = $1::text::regclass and c.relname = $2 and i.indexprs is not null
-- binds: table, name
