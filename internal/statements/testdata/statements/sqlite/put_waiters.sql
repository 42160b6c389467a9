insert into "falldue_flows" (task_id, on_death) select s.* from (select column1 as task_id, column2 as on_death from (values (?, ?), (?, ?))) as s
-- binds: task_id[0], on_death[0], task_id[1], on_death[1]
