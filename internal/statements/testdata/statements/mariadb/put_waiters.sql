insert into `falldue_flows` (task_id, on_death)
values (?, ?), (?, ?)
-- binds: task_id[0], on_death[0], task_id[1], on_death[1]
