select `count`, '' from information_schema.innodb_metrics
where name = 'trx_rseg_history_len'
-- binds: 
