delete from "falldue_changes" as t where (t.id) in (values (?), (?))
-- binds: id[0], id[1]
