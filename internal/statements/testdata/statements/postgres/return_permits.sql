update "falldue_permits" t set task_id = s.task_id, fence = s.task_fence, token = s.was, taken_until = (t.taken_until + (-s.wait)::float8 * interval '1 microsecond')
from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::bigint[]), (select $4::bigint[]), (select $5::bigint[])) as s (permit, task_id, task_fence, was, wait) where t.id = s.permit and t.token = $6::bigint
-- binds: permit[], task_id[], task_fence[], was[], wait[], token
