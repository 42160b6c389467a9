select greatest(timestampdiff(microsecond, trx_started, now(6)), 0), concat('session ', trx_mysql_thread_id) from information_schema.innodb_trx
where trx_mysql_thread_id <> connection_id()
order by trx_started limit 1
-- binds: 
