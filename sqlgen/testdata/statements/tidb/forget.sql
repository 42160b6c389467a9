delete /*+ inl_join(t) */ t from (select cast(? as signed) as task_id union all select cast(? as signed)) as s straight_join `falldue_attempts` t on t.task_id = s.task_id
