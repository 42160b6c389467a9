select queue, state, kind, policy, attempts, cast(floor(cast(cast(updated_at as integer) as real) / 60000000.0) as integer), cast(min(updated_at) as integer), cast(max(updated_at) as integer), count(*), cast((cast(round(julianday('now') * 86400000.0) as integer) - 210866760000000) * 1000 as integer) from "falldue_tasks"
where state in ('open', 'snoozed') and (task_key = ? or substr(task_key, 1, length(?)) = ? or replace(task_key, ?, '') <> task_key or substr(task_key, length(task_key) - length(?) + 1) = ?)
group by 6, 5, 4, 3, 2, 1
-- binds: key, part_first, part_first, part_within, part_last, part_last
