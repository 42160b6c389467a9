select t.id from "falldue_tasks" t where (t.id, t.fence) in (values (?, ?), (?, ?)) and t.claimed_by = ?
