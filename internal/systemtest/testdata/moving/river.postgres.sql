-- The jobs of River's main line, migrations 1 to 7, as far as their columns and constraints go.
create type river_job_state as enum ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled');
create table river_job (
    id bigserial primary key,
    state river_job_state not null default 'available',
    attempt smallint not null default 0,
    max_attempts smallint not null default 25 constraint max_attempts_is_positive check (max_attempts > 0),
    attempted_at timestamptz,
    created_at timestamptz not null default now(),
    finalized_at timestamptz,
    scheduled_at timestamptz not null default now(),
    priority smallint not null default 1 constraint priority_in_range check (priority between 1 and 4),
    args jsonb not null,
    attempted_by text[],
    errors jsonb[],
    kind text not null constraint kind_length check (char_length(kind) between 1 and 127),
    metadata jsonb not null default '{}',
    queue text not null default 'default' constraint queue_length check (char_length(queue) between 1 and 127),
    tags varchar(255)[] not null default '{}',
    unique_key bytea,
    unique_states bit(8),
    constraint finalized_or_finalized_at_null check ((finalized_at is not null) = (state in ('cancelled', 'completed', 'discarded')))
);
create index river_job_prioritized_fetching_index on river_job (state, queue, priority, scheduled_at, id);

insert into river_job (state, kind, args, priority, max_attempts, created_at, scheduled_at)
values ('available', 'invoice.send', '{"order": 1, "note": "é 😀 \"q\" \\ \n", "nested": [null, {"": []}], "big": 9007199254740993}', 3, 20, '2026-01-02 03:04:05.123456Z', '2026-01-02 03:04:05.123456Z');
insert into river_job (state, kind, args, max_attempts, created_at, scheduled_at)
values ('scheduled', 'invoice.send', '{"order": 2}', 20, '2026-01-02 03:04:05.123456Z', '2037-01-02 03:04:05.123456Z');
insert into river_job (state, kind, args, max_attempts, created_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'invoice.send', '{"order": 3}', 20, '2026-01-02 03:04:05.123456Z', '2037-01-03 03:04:05.123456Z', 3, '2026-01-02 05:04:05Z',
    array['{"at": "2026-01-02T04:04:05.678123Z", "attempt": 1, "error": "first", "trace": ""}', '{"at": "2026-01-02T04:34:05Z", "attempt": 2, "error": "second", "trace": ""}',
        '{"at": "2026-01-02T05:04:06Z", "attempt": 3, "error": "boom: é 😀 ''quoted''", "trace": ""}']::jsonb[]);
insert into river_job (state, kind, args, max_attempts, created_at, scheduled_at, attempt, attempted_at, errors)
values ('retryable', 'invoice.send', '{"order": 4}', 20, '2026-01-02 03:04:05.123456Z', '2026-01-03 03:04:05.123456Z', 2, '2026-01-02 05:04:05Z',
    array['{"at": "2026-01-02T04:04:05.678123Z", "attempt": 1, "error": "first", "trace": ""}', '{"at": "2026-01-02T05:04:06Z", "attempt": 2, "error": "boom: é 😀 ''quoted''", "trace": ""}']::jsonb[]);
insert into river_job (state, kind, args, attempt, attempted_at, attempted_by) values ('running', 'invoice.send', '{"order": 91}', 1, now(), '{me}');
insert into river_job (state, kind, args, attempt, finalized_at) values ('completed', 'invoice.send', '{"order": 92}', 1, now());
insert into river_job (state, kind, args, attempt, finalized_at) values ('discarded', 'invoice.send', '{"order": 93}', 25, now());
insert into river_job (state, kind, args) values ('pending', 'invoice.send', '{"order": 94}');
insert into river_job (kind, args) values ('no name', '{"order": 95}');
