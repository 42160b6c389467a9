update "falldue_tasks" as t set state = 'done', claimed_by = '', updated_at = (cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000
where (t.id, t.fence) in (select * from (select value ->> 0 as task_id, value ->> 1 as task_fence from json_each(?)) as s) and t.claimed_by = ?
returning id
