select f.freelist_count, cast(p.page_count as text) from pragma_freelist_count f, pragma_page_count p
-- binds: 
