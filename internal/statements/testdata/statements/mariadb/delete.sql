delete t from `falldue_tasks` t where (t.id, t.fence) in ((?, ?), (?, ?)) and t.claimed_by = ?
