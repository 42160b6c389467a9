delete from "falldue_tasks" as t where (t.id, t.fence) in (values (?, ?), (?, ?)) and t.claimed_by = ?
returning id
