-- The tables of Solid Queue 1.5 that jobs pass through, as Rails makes them on SQLite.
create table solid_queue_jobs (
    id integer primary key autoincrement not null,
    queue_name varchar not null,
    class_name varchar not null,
    arguments text,
    priority integer not null default 0,
    active_job_id varchar,
    scheduled_at datetime(6),
    finished_at datetime(6),
    concurrency_key varchar,
    created_at datetime(6) not null,
    updated_at datetime(6) not null
);
create index index_solid_queue_jobs_on_finished_at on solid_queue_jobs (finished_at);
create table solid_queue_ready_executions (
    id integer primary key autoincrement not null,
    job_id bigint not null unique,
    queue_name varchar not null,
    priority integer not null default 0,
    created_at datetime(6) not null,
    foreign key (job_id) references solid_queue_jobs (id) on delete cascade
);
create table solid_queue_scheduled_executions (
    id integer primary key autoincrement not null,
    job_id bigint not null unique,
    queue_name varchar not null,
    priority integer not null default 0,
    scheduled_at datetime(6) not null,
    created_at datetime(6) not null,
    foreign key (job_id) references solid_queue_jobs (id) on delete cascade
);
create table solid_queue_claimed_executions (
    id integer primary key autoincrement not null,
    job_id bigint not null unique,
    process_id bigint,
    created_at datetime(6) not null,
    foreign key (job_id) references solid_queue_jobs (id) on delete cascade
);
create table solid_queue_blocked_executions (
    id integer primary key autoincrement not null,
    job_id bigint not null unique,
    queue_name varchar not null,
    priority integer not null default 0,
    concurrency_key varchar not null,
    expires_at datetime(6) not null,
    created_at datetime(6) not null,
    foreign key (job_id) references solid_queue_jobs (id) on delete cascade
);
create table solid_queue_semaphores (
    id integer primary key autoincrement not null,
    key varchar not null,
    value int not null default 1,
    expires_at datetime(6) not null,
    created_at datetime(6) not null,
    updated_at datetime(6) not null
);
create unique index index_solid_queue_semaphores_on_key on solid_queue_semaphores (key);
create table solid_queue_failed_executions (
    id integer primary key autoincrement not null,
    job_id bigint not null unique,
    error text,
    created_at datetime(6) not null,
    foreign key (job_id) references solid_queue_jobs (id) on delete cascade
);

insert into solid_queue_jobs (id, queue_name, class_name, arguments, priority, scheduled_at, finished_at, created_at, updated_at, concurrency_key)
values (1, 'default', 'Shop::InvoiceJob', '{"job_class": "Shop::InvoiceJob", "job_id": "a1b2", "provider_job_id": null, "queue_name": "default", "priority": null, "arguments": [{"order": 1, "note": "é 😀 \"q\" \\ \n", "nested": [null, {"": []}], "big": 9007199254740993}], "executions": 0, "exception_executions": {}, "locale": "en", "timezone": "UTC", "enqueued_at": "2026-01-02T03:04:05.123456Z", "scheduled_at": null}', 2, '2026-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', 'Shop::InvoiceJob/1');
insert into solid_queue_jobs (id, queue_name, class_name, arguments, priority, scheduled_at, finished_at, created_at, updated_at, concurrency_key)
values (2, 'default', 'Shop::InvoiceJob', '{"job_class": "Shop::InvoiceJob", "job_id": "a1b2", "provider_job_id": null, "queue_name": "default", "priority": null, "arguments": [{"order": 2}], "executions": 0, "exception_executions": {}, "locale": "en", "timezone": "UTC", "enqueued_at": "2026-01-02T03:04:05.123456Z", "scheduled_at": null}', -40000, '2037-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', 'Shop::InvoiceJob/Zoë');
insert into solid_queue_jobs (id, queue_name, class_name, arguments, priority, scheduled_at, finished_at, created_at, updated_at, concurrency_key)
values (3, 'default', 'Shop::InvoiceJob', '{"job_class": "Shop::InvoiceJob", "job_id": "a1b2", "provider_job_id": null, "queue_name": "default", "priority": null, "arguments": [{"order": 3}], "executions": 3, "exception_executions": {}, "locale": "en", "timezone": "UTC", "enqueued_at": "2026-01-02T03:04:05.123456Z", "scheduled_at": null}', 40000, '2037-01-03 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', null);
insert into solid_queue_jobs (id, queue_name, class_name, arguments, priority, scheduled_at, finished_at, created_at, updated_at, concurrency_key)
values (4, 'default', 'Shop::InvoiceJob', '{"job_class": "Shop::InvoiceJob", "job_id": "a1b2", "provider_job_id": null, "queue_name": "default", "priority": null, "arguments": [{"order": 4}], "executions": 2, "exception_executions": {}, "locale": "en", "timezone": "UTC", "enqueued_at": "2026-01-02T03:04:05.123456Z", "scheduled_at": null}', 0, '2026-01-03 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', 'Shop::InvoiceJob/1');
insert into solid_queue_jobs (id, queue_name, class_name, arguments, priority, scheduled_at, finished_at, created_at, updated_at, concurrency_key)
values (91, 'default', 'Shop::InvoiceJob', '{"job_class": "Shop::InvoiceJob", "job_id": "a1b2", "provider_job_id": null, "queue_name": "default", "priority": null, "arguments": [{"order": 91}], "executions": 0, "exception_executions": {}, "locale": "en", "timezone": "UTC", "enqueued_at": "2026-01-02T03:04:05.123456Z", "scheduled_at": null}', 0, '2026-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', 'Shop::InvoiceJob/91');
insert into solid_queue_jobs (id, queue_name, class_name, arguments, priority, scheduled_at, finished_at, created_at, updated_at, concurrency_key)
values (92, 'default', 'Shop::InvoiceJob', '{"job_class": "Shop::InvoiceJob", "job_id": "a1b2", "provider_job_id": null, "queue_name": "default", "priority": null, "arguments": [{"order": 92}], "executions": 0, "exception_executions": {}, "locale": "en", "timezone": "UTC", "enqueued_at": "2026-01-02T03:04:05.123456Z", "scheduled_at": null}', 0, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', null);
insert into solid_queue_jobs (id, queue_name, class_name, arguments, priority, scheduled_at, finished_at, created_at, updated_at, concurrency_key)
values (93, 'default', 'Shop::InvoiceJob', '{"job_class": "Shop::InvoiceJob", "job_id": "a1b2", "provider_job_id": null, "queue_name": "default", "priority": null, "arguments": [{"order": 93}], "executions": 4, "exception_executions": {}, "locale": "en", "timezone": "UTC", "enqueued_at": "2026-01-02T03:04:05.123456Z", "scheduled_at": null}', 0, '2026-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', 'Shop::InvoiceJob/93');
insert into solid_queue_jobs (id, queue_name, class_name, arguments, priority, scheduled_at, finished_at, created_at, updated_at, concurrency_key)
values (95, 'default', 'no name', '{"job_class": "no name", "job_id": "a1b2", "provider_job_id": null, "queue_name": "default", "priority": null, "arguments": [{"order": 95}], "executions": 0, "exception_executions": {}, "locale": "en", "timezone": "UTC", "enqueued_at": "2026-01-02T03:04:05.123456Z", "scheduled_at": null}', 0, '2026-01-02 03:04:05.123456', null, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456', 'no name/95');
insert into solid_queue_ready_executions (job_id, queue_name, priority, created_at) values (1, 'default', 2, '2026-01-02 03:04:05.123456');
insert into solid_queue_ready_executions (job_id, queue_name, created_at) values (95, 'default', '2026-01-02 03:04:05.123456');
insert into solid_queue_scheduled_executions (job_id, queue_name, scheduled_at, created_at) values (2, 'default', '2037-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456');
insert into solid_queue_scheduled_executions (job_id, queue_name, scheduled_at, created_at) values (3, 'default', '2037-01-03 03:04:05.123456', '2026-01-02 03:04:05.123456');
insert into solid_queue_claimed_executions (job_id, process_id, created_at) values (91, 7, '2026-01-02 03:04:05.123456');
insert into solid_queue_failed_executions (job_id, error, created_at) values (93, '{}', '2026-01-02 03:04:05.123456');
insert into solid_queue_blocked_executions (job_id, queue_name, concurrency_key, expires_at, created_at) values (4, 'default', 'Shop::InvoiceJob/1', '2099-01-01', '2026-01-02 03:04:05.123456');
insert into solid_queue_semaphores (key, value, expires_at, created_at, updated_at)
values ('Shop::InvoiceJob/1', 0, '2099-01-01', '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456'),
    ('Shop::InvoiceJob/91', 0, '2099-01-01', '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456'),
    ('Shop::InvoiceJob/93', 1, '2099-01-01', '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456'),
    ('no name/95', 0, '2099-01-01', '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456');
