-- The first statement enqueues a task, as this release does.
insert into falldue_tasks (queue, kind, policy, priority, max_attempts, updated_at, created_at, payload) values ('default', 'load', '', 0, 0, unixepoch() * 1000000, unixepoch() * 1000000, '"old"');
-- Tasks in every state, of a kind that nobody handles.
insert into falldue_tasks (queue, kind, updated_at, created_at, payload) values ('default', 'other', 32472144000000000, 1577836800000000, '{}');
insert into falldue_tasks (queue, kind, policy, priority, state, attempts, max_attempts, fence, updated_at, created_at, first_attempted_at, attempted_at, claimed_by, last_error, payload) values
    ('default', 'other', '0123456789abcdef', -5, 'open', 3, 7, 4, 1577836800000000, 1577836800000000, 1577836800000000, 1577836800000000, '', 'connection refused', '[1, 2]'),
    ('default', 'other', '', 0, 'open', 1, 0, 1, 1577836800000000, 1577836800000000, 1577836800000000, 1577836800000000, 'host:1/abcdef', null, '"its worker vanished"'),
    ('mail', 'other', '', 32767, 'snoozed', 0, 0, 2, 32472144000000000, 1577836800000000, 1577836800000000, 1577836800000000, '', null, 'null'),
    ('mail', 'other', '', 0, 'done', 1, 0, 1, 1577836800000000, 1577836800000000, 1577836800000000, 1577836800000000, '', null, '17'),
    ('default', 'other', '', 0, 'dead', 26, 26, 26, 1577836800000000, 1577836800000000, 1577836800000000, 1577836800000000, '', 'gave up', '{"a": "b"}'),
    ('default', 'other', '', 0, 'cancelled', 0, 0, 0, 1577836800000000, 1577836800000000, 1577836800000000, 1577836800000000, '', null, '"x"');
insert into falldue_attempts (task_id, fence, attempt, outcome, worker, finished_at, duration_us, error, stack) values
    (3, 3, 2, 'retried', 'host:1/abcdef', 1577836800000000, 1500000, 'connection refused', null),
    (3, 4, 3, 'lost', 'host:1/abcdef', 1577836800000000, 0, 'the lease ran out: the worker vanished', null),
    (7, 26, 26, 'dead', 'host:1/abcdef', 1577836800000000, 10, 'panic: no', 'goroutine 1 [running]');
insert into falldue_policies (key, policy, created_at) values ('0123456789abcdef', 'delay 15s + n^4', 1577836800000000);
