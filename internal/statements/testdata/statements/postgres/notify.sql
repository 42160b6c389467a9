select pg_notify($1, $2)
-- binds: channel, notice
