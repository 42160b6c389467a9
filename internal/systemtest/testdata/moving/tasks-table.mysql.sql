-- A hand-written table of tasks.
set time_zone = '+00:00';
create table tasks (
    id bigint not null auto_increment primary key,
    kind varchar(200) not null,
    payload json not null,
    status varchar(20) not null default 'pending',
    attempts int not null default 0,
    max_attempts int not null default 20,
    run_at timestamp(6) not null default current_timestamp(6),
    last_error text,
    created_at timestamp(6) not null default current_timestamp(6),
    updated_at timestamp(6) not null default current_timestamp(6) on update current_timestamp(6)
) default character set utf8mb4;

insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 1, "note": "é 😀 \\"q\\" \\\\ \\n", "nested": [null, {"": []}], "big": 9007199254740993}', 'pending', 0, '2026-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 05:04:05');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 2}', 'pending', 0, '2037-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 05:04:05');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 3}', 'pending', 3, '2037-01-03 03:04:05.123456', 'boom: é 😀 ''quoted''', '2026-01-02 03:04:05.123456', '2026-01-02 05:04:05');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 4}', 'pending', 2, '2026-01-03 03:04:05.123456', 'boom: é 😀 ''quoted''', '2026-01-02 03:04:05.123456', '2026-01-02 05:04:05');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 91}', 'running', 1, '2026-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 05:04:05');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 92}', 'done', 1, '2026-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 05:04:05');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('invoice.send', '{"order": 93}', 'failed', 20, '2026-01-02 03:04:05.123456', 'boom: é 😀 ''quoted''', '2026-01-02 03:04:05.123456', '2026-01-02 05:04:05');
insert into tasks (kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
values ('no name', '{"order": 95}', 'pending', 0, '2026-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 05:04:05');
