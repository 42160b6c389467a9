with s as materialized (select s.* from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) as s (permit, task_id, task_fence, was, wait) join "falldue_permits" t on t.id = s.permit and t.token = s.was
for update of t skip locked)
update "falldue_permits" t set task_id = s.task_id, fence = s.task_fence, token = $6::bigint, taken_until = (greatest(t.taken_until, statement_timestamp()) + (s.wait)::float8 * interval '1 microsecond')
from s where t.id = s.permit and t.token = s.was
returning t.id
-- binds: permit[], task_id[], task_fence[], was[], wait[], token
