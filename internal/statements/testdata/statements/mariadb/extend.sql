update `falldue_tasks` as t set updated_at = date_add(utc_timestamp(6), interval (?) microsecond)
where (t.id, t.fence) in ((?, ?), (?, ?)) and t.claimed_by = ?
