select task_id, fence, millionths, message, (date_part('epoch'::text, least(greatest(updated_at, '0001-01-01 UTC'), '9999-12-31 UTC')) * 1000000::float8)::bigint from "falldue_progress" where task_id = $1
-- binds: id
