-- The jobs of Oban on SQLite, migration 1, as far as their columns go.
create table oban_jobs (
    id integer primary key autoincrement,
    state text not null default 'available',
    queue text not null default 'default',
    worker text not null,
    args json not null default '{}',
    meta json not null default '{}',
    tags json not null default '[]',
    errors json not null default '[]',
    attempt integer not null default 0,
    max_attempts integer not null default 20,
    priority integer not null default 0,
    inserted_at text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    scheduled_at text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    attempted_at text,
    attempted_by json not null default '[]',
    cancelled_at text,
    completed_at text,
    discarded_at text
);
create index oban_jobs_state_queue_priority_scheduled_at_id_index on oban_jobs (state, queue, priority, scheduled_at, id);

insert into oban_jobs (state, worker, args, priority, inserted_at, scheduled_at)
values ('available', 'Shop.InvoiceWorker', '{"order": 1, "note": "é 😀 \"q\" \\ \n", "nested": [null, {"": []}], "big": 9007199254740993}', 2, '2026-01-02T03:04:05.123456Z', '2026-01-02T03:04:05.123456Z');
insert into oban_jobs (state, worker, args, inserted_at, scheduled_at)
values ('scheduled', 'Shop.InvoiceWorker', '{"order": 2}', '2026-01-02T03:04:05.123456Z', '2037-01-02T03:04:05.123456Z');
-- Oban appends errors as texts that are JSON, not as objects.
insert into oban_jobs (state, worker, args, inserted_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'Shop.InvoiceWorker', '{"order": 3}', '2026-01-02T03:04:05.123456Z', '2037-01-03T03:04:05.123456Z', 3, '2026-01-02T05:04:05.000000Z',
    json_array('{"at": "2026-01-02T04:04:05.678123Z", "attempt": 1, "error": "first"}', '{"at": "2026-01-02T05:04:06.000000Z", "attempt": 3, "error": "boom: é 😀 ''quoted''"}'));
insert into oban_jobs (state, worker, args, inserted_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'Shop.InvoiceWorker', '{"order": 4}', '2026-01-02T03:04:05.123456Z', '2026-01-03T03:04:05.123456Z', 2, '2026-01-02T05:04:05.000000Z',
    '[{"at": "2026-01-02T04:04:05.678123Z", "attempt": 1, "error": "first"}, {"at": "2026-01-02T05:04:06.000000Z", "attempt": 2, "error": "boom: é 😀 ''quoted''"}]');
insert into oban_jobs (state, worker, args, attempt, attempted_at, attempted_by) values ('executing', 'Shop.InvoiceWorker', '{"order": 91}', 1, '2026-01-02T05:04:05.000000Z', '["me"]');
insert into oban_jobs (state, worker, args, attempt, completed_at) values ('completed', 'Shop.InvoiceWorker', '{"order": 92}', 1, '2026-01-02T05:04:05.000000Z');
insert into oban_jobs (state, worker, args, attempt, discarded_at) values ('discarded', 'Shop.InvoiceWorker', '{"order": 93}', 20, '2026-01-02T05:04:05.000000Z');
insert into oban_jobs (state, worker, args) values ('suspended', 'Shop.InvoiceWorker', '{"order": 94}');
insert into oban_jobs (worker, args) values ('no name', '{"order": 95}');
