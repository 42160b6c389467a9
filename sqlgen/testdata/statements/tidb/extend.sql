update /*+ inl_join(t) */ (select cast(? as signed) as task_id, cast(? as signed) as task_fence union all select cast(? as signed), cast(? as signed)) as s straight_join `falldue_tasks` t on t.id = s.task_id and t.fence = s.task_fence and t.claimed_by = ?
set updated_at = date_add(utc_timestamp(6), interval (?) microsecond)
