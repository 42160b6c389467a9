delete from "falldue_tasks" as t where (t.id) in (values (?), (?)) and t.state in ('done', 'dead', 'cancelled')
