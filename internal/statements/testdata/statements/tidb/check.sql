select s.n, case when s.n between 1 and 2147483647 then cast(floor(55020e0 * atan(power((s.n + 0e0), 3e0) / 15e0) * 1000000e0 + 0.5e0) as signed) when s.n > 2147483647 then 86425213900 else 0 end as f0, case when s.n between 1 and 2147483647 then cast(floor(least(15e0 + power((s.n + 0e0), 4e0), 3153600000e0) * 1000000e0 + 0.5e0) as signed) when s.n > 2147483647 then 3153600000000000 else 0 end as f1
from (select cast(? as signed) as n union all select cast(? as signed)) as s
order by s.n
-- binds: n[0], n[1]
