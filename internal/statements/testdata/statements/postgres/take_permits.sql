with s as materialized (select s.* from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::bigint[]), (select $4::bigint[]), (select $5::bigint[])) as s (permit, task_id, task_fence, was, wait) join "falldue_permits" t on t.id = s.permit and t.token = s.was
for update of t skip locked)
update "falldue_permits" t set task_id = s.task_id, fence = s.task_fence, token = $6::bigint, taken_until = (greatest(t.taken_until, statement_timestamp()) + (s.wait)::float8 * interval '1 microsecond')
from s where t.id = s.permit and t.token = s.was
returning t.id
-- binds: permit[], task_id[], task_fence[], was[], wait[], token
