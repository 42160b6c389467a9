select s.queue from (select cast(? as char character set ascii) collate ascii_bin as queue union all select cast(? as char character set ascii) collate ascii_bin) s
where exists (select 1 from `falldue_tasks` t where t.queue = s.queue and t.state = ?)
-- binds: queue[0], queue[1], state
