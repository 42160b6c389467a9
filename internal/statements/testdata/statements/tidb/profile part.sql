select queue, state, kind, policy, attempts, cast(floor((coalesce(timestampdiff(microsecond, '1970-01-01', updated_at), -1) + 0e0) / 60000000e0) as signed), coalesce(timestampdiff(microsecond, '1970-01-01', min(updated_at)), -1), coalesce(timestampdiff(microsecond, '1970-01-01', max(updated_at)), -1), count(*), coalesce(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), -1) from `falldue_tasks`
where state in ('open', 'snoozed') and (task_key = ? or substr(task_key, 1, length(?)) = ? or replace(task_key, ?, '') <> task_key or substr(task_key, length(task_key) - length(?) + 1) = ?)
group by 6, 5, 4, 3, 2, 1
-- binds: key, part_first, part_first, part_within, part_last, part_last
