-- The jobs of Oban on MySQL, migration 1, as far as their columns and constraints go.
create table oban_jobs (
    id bigint unsigned not null auto_increment primary key,
    state enum('suspended', 'available', 'scheduled', 'executing', 'retryable', 'completed', 'cancelled', 'discarded') not null default 'available',
    queue varchar(255) not null default 'default',
    worker varchar(255) not null,
    args json not null,
    meta json not null default ('{}'),
    tags json not null default ('[]'),
    attempted_by json not null default ('[]'),
    errors json not null default ('[]'),
    attempt int not null default 0,
    max_attempts int not null default 20,
    priority int not null default 0,
    inserted_at datetime(6) not null default (utc_timestamp(6)),
    scheduled_at datetime(6) not null default (utc_timestamp(6)),
    attempted_at datetime(6),
    cancelled_at datetime(6),
    completed_at datetime(6),
    discarded_at datetime(6),
    index (state, queue, priority, scheduled_at, id),
    constraint attempt_range check (attempt between 0 and max_attempts),
    constraint non_negative_priority check (priority >= 0),
    constraint positive_max_attempts check (max_attempts > 0)
) default character set utf8mb4;

insert into oban_jobs (state, worker, args, priority, inserted_at, scheduled_at)
values ('available', 'Shop.InvoiceWorker', '{"order": 1, "note": "é 😀 \\"q\\" \\\\ \\n", "nested": [null, {"": []}], "big": 9007199254740993}', 2, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456');
insert into oban_jobs (state, worker, args, inserted_at, scheduled_at)
values ('scheduled', 'Shop.InvoiceWorker', '{"order": 2}', '2026-01-02 03:04:05.123456', '2037-01-02 03:04:05.123456');
-- Oban appends errors as texts that are JSON, not as objects.
insert into oban_jobs (state, worker, args, inserted_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'Shop.InvoiceWorker', '{"order": 3}', '2026-01-02 03:04:05.123456', '2037-01-03 03:04:05.123456', 3, '2026-01-02 05:04:05',
    json_array('{"at": "2026-01-02T04:04:05.678123Z", "attempt": 1, "error": "first"}', '{"at": "2026-01-02T05:04:06.000000Z", "attempt": 3, "error": "boom: é 😀 ''quoted''"}'));
insert into oban_jobs (state, worker, args, inserted_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'Shop.InvoiceWorker', '{"order": 4}', '2026-01-02 03:04:05.123456', '2026-01-03 03:04:05.123456', 2, '2026-01-02 05:04:05',
    '[{"at": "2026-01-02T04:04:05.678123Z", "attempt": 1, "error": "first"}, {"at": "2026-01-02T05:04:06.000000Z", "attempt": 2, "error": "boom: é 😀 ''quoted''"}]');
insert into oban_jobs (state, worker, args, attempt, attempted_at) values ('executing', 'Shop.InvoiceWorker', '{"order": 91}', 1, utc_timestamp(6));
insert into oban_jobs (state, worker, args, attempt, completed_at) values ('completed', 'Shop.InvoiceWorker', '{"order": 92}', 1, utc_timestamp(6));
insert into oban_jobs (state, worker, args, attempt, discarded_at) values ('discarded', 'Shop.InvoiceWorker', '{"order": 93}', 20, utc_timestamp(6));
insert into oban_jobs (state, worker, args) values ('suspended', 'Shop.InvoiceWorker', '{"order": 94}');
insert into oban_jobs (worker, args) values ('no name', '{"order": 95}');
