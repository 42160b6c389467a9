select s.n, case when s.n between 1 and 2147483647 then floor(55020::float8 * atan(power(s.n::float8, 3::float8) / 15::float8) * 1000000::float8 + 0.5::float8)::bigint when s.n > 2147483647 then 86425213900 else 0 end as f0, case when s.n between 1 and 2147483647 then floor(least(15::float8 + power(s.n::float8, 4::float8), 3153600000::float8) * 1000000::float8 + 0.5::float8)::bigint when s.n > 2147483647 then 3153600000000000 else 0 end as f1
from pg_catalog.unnest((select $1::bigint[])) as s (n)
order by s.n
-- binds: n[]
