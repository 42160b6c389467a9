-- A hand-written table of tasks.
create table tasks (
    id bigserial primary key,
    kind text not null,
    payload jsonb not null,
    status varchar(20) not null default 'pending',
    attempts int not null default 0,
    max_attempts int not null default 20,
    run_at timestamptz not null default now(),
    last_error text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 1, "note": "é 😀 \"q\" \\ \n", "nested": [null, {"": []}], "big": 9007199254740993}', 'pending', 0, '2026-01-02 03:04:05.123456Z', null, '2026-01-02 03:04:05.123456Z', '2026-01-02 05:04:05Z');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 2}', 'pending', 0, '2037-01-02 03:04:05.123456Z', null, '2026-01-02 03:04:05.123456Z', '2026-01-02 05:04:05Z');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 3}', 'pending', 3, '2037-01-03 03:04:05.123456Z', 'boom: é 😀 ''quoted''', '2026-01-02 03:04:05.123456Z', '2026-01-02 05:04:05Z');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 4}', 'pending', 2, '2026-01-03 03:04:05.123456Z', 'boom: é 😀 ''quoted''', '2026-01-02 03:04:05.123456Z', '2026-01-02 05:04:05Z');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 91}', 'running', 1, '2026-01-02 03:04:05.123456Z', null, '2026-01-02 03:04:05.123456Z', '2026-01-02 05:04:05Z');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 92}', 'done', 1, '2026-01-02 03:04:05.123456Z', null, '2026-01-02 03:04:05.123456Z', '2026-01-02 05:04:05Z');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 93}', 'failed', 20, '2026-01-02 03:04:05.123456Z', 'boom: é 😀 ''quoted''', '2026-01-02 03:04:05.123456Z', '2026-01-02 05:04:05Z');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('no name', '{"order": 95}', 'pending', 0, '2026-01-02 03:04:05.123456Z', null, '2026-01-02 03:04:05.123456Z', '2026-01-02 05:04:05Z');
