-- The jobs of River's main line on SQLite, migrations 1 to 7, as far as their columns and constraints go.
create table river_job (
    id integer primary key,
    args blob not null default (jsonb('{}')),
    attempt integer not null default 0,
    attempted_at timestamp,
    attempted_by blob,
    created_at timestamp not null default current_timestamp,
    errors blob,
    finalized_at timestamp,
    kind text not null constraint kind_length check (length(kind) between 1 and 127),
    metadata blob not null default (jsonb('{}')),
    priority integer not null default 1 constraint priority_in_range check (priority between 1 and 4),
    queue text not null default 'default' constraint queue_length check (length(queue) between 1 and 127),
    state text not null default 'available' constraint state_valid check (state in ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled')),
    scheduled_at timestamp not null default current_timestamp,
    tags blob not null default (jsonb('[]')),
    unique_key blob,
    unique_states integer,
    max_attempts integer not null default 25,
    constraint finalized_or_finalized_at_null check ((finalized_at is not null) = (state in ('cancelled', 'completed', 'discarded')))
);
create index river_job_prioritized_fetching_index on river_job (state, queue, priority, scheduled_at, id);

insert into river_job (state, kind, args, priority, max_attempts, created_at, scheduled_at)
values ('available', 'invoice.send', jsonb('{"order": 1, "note": "é 😀 \"q\" \\ \n", "nested": [null, {"": []}], "big": 9007199254740993}'), 3, 20, '2026-01-02 03:04:05.123', '2026-01-02 03:04:05.123');
insert into river_job (state, kind, args, max_attempts, created_at, scheduled_at)
values ('scheduled', 'invoice.send', jsonb('{"order": 2}'), 20, '2026-01-02 03:04:05.123', '2037-01-02 03:04:05.123');
insert into river_job (state, kind, args, max_attempts, created_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'invoice.send', jsonb('{"order": 3}'), 20, '2026-01-02 03:04:05.123', '2037-01-03 03:04:05.123', 3, '2026-01-02 05:04:05',
    jsonb('[{"at": "2026-01-02T04:04:05.678123456Z", "attempt": 1, "error": "first", "trace": ""}, {"at": "2026-01-02T04:34:05Z", "attempt": 2, "error": "second", "trace": ""}, {"at": "2026-01-02T05:04:06Z", "attempt": 3, "error": "boom: é 😀 ''quoted''", "trace": ""}]'));
insert into river_job (state, kind, args, max_attempts, created_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'invoice.send', jsonb('{"order": 4}'), 20, '2026-01-02 03:04:05.123', '2026-01-03 03:04:05.123', 2, '2026-01-02 05:04:05',
    jsonb('[{"at": "2026-01-02T04:04:05.678123Z", "attempt": 1, "error": "first", "trace": ""}, {"at": "2026-01-02T05:04:06Z", "attempt": 2, "error": "boom: é 😀 ''quoted''", "trace": ""}]'));
insert into river_job (state, kind, args, attempt, attempted_at, attempted_by) values ('running', 'invoice.send', jsonb('{"order": 91}'), 1, datetime('now', 'subsec'), jsonb('["me"]'));
insert into river_job (state, kind, args, attempt, finalized_at) values ('completed', 'invoice.send', jsonb('{"order": 92}'), 1, datetime('now', 'subsec'));
insert into river_job (state, kind, args, attempt, finalized_at) values ('discarded', 'invoice.send', jsonb('{"order": 93}'), 25, datetime('now', 'subsec'));
insert into river_job (state, kind, args) values ('pending', 'invoice.send', jsonb('{"order": 94}'));
insert into river_job (kind, args) values ('no name', jsonb('{"order": 95}'));
