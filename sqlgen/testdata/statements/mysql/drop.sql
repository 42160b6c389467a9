delete t from (select cast(? as signed) as task_id union all select cast(? as signed)) as s straight_join `falldue_tasks` t on t.id = s.task_id and t.state in ('done', 'dead', 'cancelled')
