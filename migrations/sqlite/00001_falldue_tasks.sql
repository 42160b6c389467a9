-- +goose Up

-- A task is due when state is open and updated_at + f(attempts) has passed,
-- f being the delay of its policy; or when state is snoozed and updated_at has.
-- All moments are microseconds since 1970, UTC.
create table if not exists {tasks} (
    id                 integer primary key autoincrement,
    queue              text    not null,
    kind               text    not null,
    policy             text    not null default '', -- key in {policies}; '' is the kind's own
    task_key           text    not null default '', -- what the task belongs to, such as a customer
    priority           integer not null default 0,  -- lower first
    state              text    not null default 'open'
                       check (state in ('blocked', 'open', 'snoozed', 'done', 'dead', 'cancelled')),
    attempts           integer not null default 0,  -- executions that count
    max_attempts       integer not null default 0,  -- 0 is the policy's own
    fence              integer not null default 0,  -- claims so far, never goes down
    updated_at         integer not null,            -- the anchor: the moment the wait counts from
    created_at         integer not null,
    first_attempted_at integer not null default 0,  -- start of attempt 1, when there was one
    attempted_at       integer not null default 0,  -- start of the latest run
    claimed_by         text    not null default '', -- the worker that runs it, '' when none does
    last_error         text,
    payload            text    not null,            -- JSON
    result             text,                        -- JSON
    unique_key         text,                        -- its row in {uniques}, if it has one
    metadata           text                         -- JSON: texts by their names, which say more about it
);

-- One index serves claims, sweeps, lists and cleaning. All rows of one lane, that
-- is of one (queue, state, task_key, priority, kind, policy, attempts), wait equally long,
-- so the due ones are a prefix of updated_at.
create index if not exists {lane} on {tasks} (queue, state, task_key, priority, kind, policy, attempts, updated_at);

-- Failed and lost attempts, with their errors.
create table if not exists {attempts} (
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

-- Policies that tasks were enqueued with, by a key made from their text.
create table if not exists {policies} (
    key        text    not null primary key,
    policy     text    not null,
    created_at integer not null
) without rowid;

-- How far runs have come that report it. A row goes within minutes after its task.
create table if not exists {progress} (
    task_id    integer primary key,
    fence      integer not null, -- the task's fence in the run that reported it
    millionths integer not null, -- of the work
    message    text    not null,
    updated_at integer not null
);

-- Steps of handlers, which do not run again once they have a result. The rows of a task are deleted with it, or within an hour.
create table if not exists {steps} (
    task_id     integer not null,
    n           integer not null,           -- the number of the step, from 1
    name        text    not null,
    fence       integer not null,           -- the task's fence in the run that wrote last
    crashes     integer not null default 0, -- runs that were lost while the step ran
    started_at  integer not null,           -- when the step last began
    updated_at  integer not null,
    step_cursor text,                       -- JSON: how far an unfinished step has come
    result      text,                       -- JSON, once the step is done
    primary key (task_id, n)
) without rowid;

-- Permits of limits. A limit of n has the permits 0 to n - 1. Each names the claim that
-- has it, (task_id, fence), and is free again when that claim no longer lives.
create table if not exists {permits} (
    id          integer primary key,
    name        text    not null,           -- of the limit
    n           integer not null,
    task_id     integer not null default 0,
    fence       integer not null default 0,
    token       integer not null default 0, -- a random number of whoever took it last
    taken_until integer not null default 0, -- of a rate: free from then on
    unique (name, n)
);

-- Unique keys. A key is the hash of what no two tasks may have in common, and names the
-- task that holds it, or held it last.
create table if not exists {uniques} (
    hash       text    not null primary key,
    task_id    integer not null,
    token      integer not null, -- a random number of whoever took it last
    was        integer not null, -- the token before
    held_until integer not null  -- the key is held until then, whatever becomes of the task
) without rowid;

-- What people have asked of all workers, as a history. Workers read what is new every second.
create table if not exists {changes} (
    id         integer primary key,
    created_at integer not null,
    subject    text    not null,            -- such as queue:default
    what       text    not null,            -- pause, resume, cancel, policy, clear policy
    value      text    not null default '', -- of a cancel: the fence of the claim; of a policy: its steps
    ends_at    integer not null default 0,  -- of a pause or a policy; 1970 is never
    who        text    not null default '',
    why        text    not null default ''
);

create index if not exists {recent} on {changes} (created_at);

-- The workers that run, as they announce themselves every 15 seconds. A worker that ends
-- removes its row, and others remove that of one that has died.
create table if not exists {workers} (
    id         text    not null primary key,
    started_at integer not null,
    seen_at    integer not null,           -- when it last announced itself
    running    integer not null default 0, -- handlers
    done       integer not null default 0, -- tasks that succeeded since the start
    failed     integer not null default 0, -- attempts that failed since the start
    recent     text,                       -- JSON: how the runs of each kind have ended in the last five minutes
    info       text    not null            -- JSON: host, process, release, queues, kinds with their policies and limits
) without rowid;

-- Schedules of periodic tasks. Of all that see a schedule due, the one that moves next_at
-- enqueues the task.
create table if not exists {schedules} (
    name         text    not null primary key,
    spec         text    not null,           -- a cron expression, or @every and a duration
    zone         text    not null,           -- by whose clock, such as Europe/Berlin
    missed       integer not null,           -- what becomes of missed ticks: -1 nothing, 0 one task, n up to n tasks
    alone        integer not null,           -- 1: no task while the last one is not finished
    per_tick     integer not null,           -- 1: the program makes the task of each tick, of this queue and kind
    queue        text    not null,           -- of the tasks, as all that follows
    kind         text    not null,
    priority     integer not null,
    task_key     text    not null,
    max_attempts integer not null,
    payload      text    not null,           -- JSON
    metadata     text,                       -- JSON
    hash         text    not null,           -- of all of the above
    defined_by   text    not null,
    defined_at   integer not null,
    started_at   integer not null,           -- from where intervals count
    next_at      integer not null,
    last_at      integer not null default 0, -- when a task was last enqueued
    last_task    integer not null default 0,
    asked_at     integer not null default 0, -- since when a process with another definition asks who has this one
    paused       integer not null default 0,
    paused_at    integer not null default 0, -- of a paused one, as all that follows
    paused_by    text    not null default '', -- who paused it
    paused_why   text    not null default ''
) without rowid;

-- Blocked tasks, which run after others, with what the others' deaths mean to them.
create table if not exists {flows} (
    task_id  integer not null primary key,
    on_death integer not null -- 0 wait, 1 cancel, 2 run anyway, 3 run at the first death
);

-- Which task runs after which. Each row of a task that has ended says how.
create table if not exists {edges} (
    task_id integer not null,
    waiter  integer not null, -- the task that runs after it
    outcome text    not null default '', -- done, dead, cancelled, deleted
    primary key (task_id, waiter)
) without rowid;

create index if not exists {waiters} on {edges} (waiter, outcome, task_id);

-- Sums of the runs that have ended in a span of 60, 600 or 3600 seconds, and what waited in it, of a
-- queue and a kind. Workers add to them once a minute.
create table if not exists {minutes} (
    span          integer not null, -- in seconds
    at            integer not null, -- when the span begins, UTC
    queue         text not null,
    kind          text not null, -- '' stands for all kinds beyond the first 200
    started       integer not null default 0, -- runs that began
    done          integer not null default 0, -- tasks that succeeded
    failed        integer not null default 0, -- attempts that failed, after which the task waits
    dead          integer not null default 0, -- tasks that failed for the last time
    snoozed       integer not null default 0, -- runs that snoozed their task
    cancelled     integer not null default 0, -- runs whose task was cancelled or deleted
    lost          integer not null default 0, -- runs that lost their lease
    expired       integer not null default 0, -- tasks that had not started in time
    run_us        integer not null default 0, -- how long handlers ran, in total
    run_max_us    integer not null default 0, -- the longest run
    lag_us        integer not null default 0, -- how late runs began, in total
    lag_max_us    integer not null default 0, -- the latest one
    -- Runs by their length, and by how late they began: up to 10 ms, 100 ms, 1 s, 10 s, 1 min, 10 min, 1 h, more.
    run_0         integer not null default 0,
    run_1         integer not null default 0,
    run_2         integer not null default 0,
    run_3         integer not null default 0,
    run_4         integer not null default 0,
    run_5         integer not null default 0,
    run_6         integer not null default 0,
    run_7         integer not null default 0,
    lag_0         integer not null default 0,
    lag_1         integer not null default 0,
    lag_2         integer not null default 0,
    lag_3         integer not null default 0,
    lag_4         integer not null default 0,
    lag_5         integer not null default 0,
    lag_6         integer not null default 0,
    lag_7         integer not null default 0,
    waiting       integer, -- an estimate of the tasks that have not ended; null if none was made, as in all that follows
    dead_now      integer, -- an estimate of the dead tasks
    oldest_due_us integer, -- for how long the first due task had waited
    primary key (span, at, queue, kind)
) without rowid;

-- Measurements of the whole database: row 1 has the number of tasks, row 2 the state for metrics. Of all processes
-- that find a row old, the one that moves at measures anew.
create table if not exists {sample} (
    id     integer not null primary key,
    at     integer not null,
    sample text -- JSON
);

insert or ignore into {sample} (id, at) values (1, 0), (2, 0);

-- What people have done through the web page or the command, for people.
create table if not exists {audit} (
    id         integer primary key,
    created_at integer not null,
    who        text not null default '',
    why        text not null default '',
    action     text not null,           -- such as retry
    target     text not null,           -- such as task 5, or the filter of many tasks
    changed    integer not null default 0 -- how many tasks, schedules, pauses or policies
);

create index if not exists {audited} on {audit} (created_at);

-- +goose Down
drop table if exists {audit};
drop table if exists {sample};
drop table if exists {minutes};
drop table if exists {edges};
drop table if exists {flows};
drop table if exists {schedules};
drop table if exists {workers};
drop table if exists {changes};
drop table if exists {uniques};
drop table if exists {permits};
drop table if exists {steps};
drop table if exists {progress};
drop table if exists {policies};
drop table if exists {attempts};
drop table if exists {tasks};
