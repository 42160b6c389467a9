select id from `falldue_tasks`
where id > ? and queue = ? and kind = ? and state = ? and state in ('blocked', 'open', 'snoozed') limit ?
-- binds: after, queue, kind, state, limit
