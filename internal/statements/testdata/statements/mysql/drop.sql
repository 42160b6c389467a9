delete t from `falldue_tasks` t where (t.id) in ((?), (?)) and t.state in ('done', 'dead', 'cancelled')
