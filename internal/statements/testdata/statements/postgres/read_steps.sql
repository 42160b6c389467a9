select task_id, fence, n, name, crashes, step_cursor, result, (date_part('epoch'::text, least(greatest(started_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint, (date_part('epoch'::text, least(greatest(updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_steps" where task_id = $1 order by n
-- binds: id
