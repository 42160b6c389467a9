-- 00001_tasks.sql

-- A task is due when state is open and updated_at + f(attempts) has passed,
-- f being the delay of its policy; or when state is snoozed and updated_at has.
-- All moments are microseconds since 1970, UTC.
create table if not exists "falldue_tasks" (
    id                 integer primary key autoincrement,
    queue              text    not null,
    kind               text    not null,
    policy             text    not null default '', -- key in "falldue_policies"; '' is the kind's own
    priority           integer not null default 0,  -- lower first
    state              text    not null default 'open'
                       check (state in ('open', 'snoozed', 'done', 'dead', 'cancelled')),
    attempts           integer not null default 0,  -- executions that count
    max_attempts       integer not null default 0,  -- 0 is the policy's own
    fence              integer not null default 0,  -- claims so far, never goes down
    updated_at         integer not null,            -- the moment the wait counts from
    created_at         integer not null,
    first_attempted_at integer not null default 0,  -- start of attempt 1, when there was one
    attempted_at       integer not null default 0,  -- start of the latest run
    claimed_by         text    not null default '', -- the worker that runs it, '' when none does
    last_error         text,
    payload            text    not null,            -- JSON
    result             text                         -- JSON
);

-- One index serves everything: claims, sweeps, lists and cleaning. All rows of
-- one (queue, state, priority, kind, policy, attempts) wait equally long, so
-- that those due are a prefix of updated_at.
create index if not exists "falldue_lane" on "falldue_tasks" (queue, state, priority, kind, policy, attempts, updated_at);

-- What went wrong, attempt by attempt.
create table if not exists "falldue_attempts" (
    task_id     integer not null,
    fence       integer not null, -- the task's fence while it ran
    attempt     integer not null, -- the task's attempts while it ran
    outcome     text    not null, -- retried, dead, lost
    worker      text    not null,
    finished_at integer not null,
    duration_us integer not null,
    error       text    not null,
    stack       text,             -- of a panic
    primary key (task_id, fence)
) without rowid;

-- Policies that tasks were enqueued with, by the key of their text.
create table if not exists "falldue_policies" (
    key        text    not null primary key,
    policy     text    not null,
    created_at integer not null
) without rowid;

-- versions

create table "falldue_migrations" (version bigint not null primary key, applied_at timestamp not null default current_timestamp);
insert into "falldue_migrations" (version) values (0), (1);
