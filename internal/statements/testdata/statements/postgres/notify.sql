select pg_notify($1, '')
-- binds: channel
