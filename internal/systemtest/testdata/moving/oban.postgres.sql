-- The jobs of Oban on PostgreSQL, migrations 1 to 14, as far as their columns and constraints go.
create type oban_job_state as enum ('available', 'suspended', 'scheduled', 'executing', 'retryable', 'completed', 'discarded', 'cancelled');
create table oban_jobs (
    id bigserial primary key,
    state oban_job_state not null default 'available',
    queue text not null default 'default',
    worker text not null,
    args jsonb not null default '{}',
    errors jsonb[] not null default '{}',
    attempt integer not null default 0,
    max_attempts integer not null default 20 constraint positive_max_attempts check (max_attempts > 0),
    inserted_at timestamp not null default timezone('UTC', now()),
    scheduled_at timestamp not null default timezone('UTC', now()),
    attempted_at timestamp,
    completed_at timestamp,
    attempted_by text[],
    discarded_at timestamp,
    priority integer not null default 0 constraint non_negative_priority check (priority >= 0),
    tags text[] default '{}',
    meta jsonb default '{}',
    cancelled_at timestamp,
    constraint attempt_range check (attempt between 0 and max_attempts)
);
create index on oban_jobs (state, queue, priority, scheduled_at, id);

insert into oban_jobs (state, worker, args, priority, inserted_at, scheduled_at)
values ('available', 'Shop.InvoiceWorker', '{"order": 1, "note": "é 😀 \"q\" \\ \n", "nested": [null, {"": []}], "big": 9007199254740993}', 2, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456');
insert into oban_jobs (state, worker, args, inserted_at, scheduled_at)
values ('scheduled', 'Shop.InvoiceWorker', '{"order": 2}', '2026-01-02 03:04:05.123456', '2037-01-02 03:04:05.123456');
insert into oban_jobs (state, worker, args, inserted_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'Shop.InvoiceWorker', '{"order": 3}', '2026-01-02 03:04:05.123456', '2037-01-03 03:04:05.123456', 3, '2026-01-02 05:04:05',
    array['{"at": "2026-01-02T04:04:05.678123Z", "attempt": 1, "error": "first"}', '{"at": "2026-01-02T05:04:06.000000Z", "attempt": 3, "error": "boom: é 😀 ''quoted''"}']::jsonb[]);
insert into oban_jobs (state, worker, args, inserted_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'Shop.InvoiceWorker', '{"order": 4}', '2026-01-02 03:04:05.123456', '2026-01-03 03:04:05.123456', 2, '2026-01-02 05:04:05',
    array['{"at": "2026-01-02T04:04:05.678123Z", "attempt": 1, "error": "first"}', '{"at": "2026-01-02T05:04:06.000000Z", "attempt": 2, "error": "boom: é 😀 ''quoted''"}']::jsonb[]);
insert into oban_jobs (state, worker, args, attempt, attempted_at, attempted_by) values ('executing', 'Shop.InvoiceWorker', '{"order": 91}', 1, timezone('UTC', now()), '{me}');
insert into oban_jobs (state, worker, args, attempt, completed_at) values ('completed', 'Shop.InvoiceWorker', '{"order": 92}', 1, timezone('UTC', now()));
insert into oban_jobs (state, worker, args, attempt, discarded_at) values ('discarded', 'Shop.InvoiceWorker', '{"order": 93}', 20, timezone('UTC', now()));
insert into oban_jobs (state, worker, args) values ('suspended', 'Shop.InvoiceWorker', '{"order": 94}');
insert into oban_jobs (worker, args) values ('no name', '{"order": 95}');
