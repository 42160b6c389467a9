update "falldue_permits" t set task_id = s.task_id, fence = s.task_fence, token = s.was, taken_until = (t.taken_until + (-s.wait)::float8 * interval '1 microsecond')
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) as s (permit, task_id, task_fence, was, wait) where t.id = s.permit and t.token = $6::bigint
-- binds: permit[], task_id[], task_fence[], was[], wait[], token
