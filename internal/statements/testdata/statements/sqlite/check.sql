select s.n, case when s.n between 1 and 2147483647 then cast(floor(55020.0 * atan(power(cast(s.n as real), 3.0) / 15.0) * 1000000.0 + 0.5) as integer) when s.n > 2147483647 then 86425213900 else 0 end as f0, case when s.n between 1 and 2147483647 then cast(floor(min(15.0 + power(cast(s.n as real), 4.0), 3153600000.0) * 1000000.0 + 0.5) as integer) when s.n > 2147483647 then 3153600000000000 else 0 end as f1
from (select column1 as n from (values (?), (?))) as s
order by s.n
-- binds: n[0], n[1]
