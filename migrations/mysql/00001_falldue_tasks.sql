-- +goose Up
-- +goose NO TRANSACTION

-- A task is due when state is open and updated_at + f(attempts) has passed,
-- f being the delay of its policy; or when state is snoozed and updated_at has.
-- All moments are UTC.
--
-- One index serves claims, sweeps, lists and cleaning. All rows of one lane, that
-- is of one (queue, state, task_key, priority, kind, policy, attempts), wait equally long,
-- so the due ones are a prefix of updated_at.
--
-- A claim leaves the length of a row as it was: no moment that it writes is null,
-- and claimed_by is a CHAR. A row that grows makes InnoDB split the page, which
-- costs as much as the claim itself.
--
-- TiDB alone reads what stands in /*T! */. Each of its servers takes so many ids at once, so that
-- the new rows of two servers are far from each other, in different regions of a cluster.
create table if not exists {tasks} (
    id                 bigint       not null auto_increment primary key,
    queue              varchar(100) character set ascii collate ascii_bin not null,
    kind               varchar(100) character set ascii collate ascii_bin not null,
    policy             varchar(16)  character set ascii collate ascii_bin not null default '', -- key in {policies}; '' is the kind's own
    task_key           varchar(128) character set ascii collate ascii_bin not null default '', -- what the task belongs to, such as a customer
    priority           smallint     not null default 0,     -- lower first
    state              varchar(9)   character set ascii collate ascii_bin not null default 'open'
                       check (state in ('blocked', 'open', 'snoozed', 'done', 'dead', 'cancelled')),
    attempts           int          not null default 0,     -- executions that count
    max_attempts       int          not null default 0,     -- 0 is the policy's own
    fence              bigint       not null default 0,     -- claims so far, never goes down
    updated_at         datetime(6)  not null,               -- the anchor: the moment the wait counts from
    created_at         datetime(6)  not null,
    first_attempted_at datetime(6)  not null default '1970-01-01', -- start of attempt 1, when there was one
    attempted_at       datetime(6)  not null default '1970-01-01', -- start of the latest run
    claimed_by         char(40) character set ascii collate ascii_bin not null default '', -- the worker that runs it
    last_error         mediumtext,
    payload            longtext     not null,               -- JSON
    result             longtext,                            -- JSON
    unique_key         char(43) character set ascii collate ascii_bin, -- its row in {uniques}, if it has one
    metadata           text,                                -- JSON: texts by their names, which say more about it
    index {lane} (queue, state, task_key, priority, kind, policy, attempts, updated_at)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin /*T![auto_id_cache] auto_id_cache = 100000000 */;

-- Failed and lost attempts, with their errors.
create table if not exists {attempts} (
    task_id     bigint       not null,
    fence       bigint       not null, -- the task's fence while it ran
    attempt     int          not null, -- the task's attempts while it ran
    outcome     varchar(9)   character set ascii collate ascii_bin not null, -- retried, dead, lost
    worker      varchar(100) character set ascii collate ascii_bin not null,
    finished_at datetime(6)  not null,
    duration_us bigint       not null,
    error       mediumtext   not null,
    stack       mediumtext,            -- of a panic
    primary key (task_id, fence)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- Policies that tasks were enqueued with, by a key made from their text.
create table if not exists {policies} (
    `key`      varchar(16)   character set ascii collate ascii_bin not null primary key,
    policy     varchar(8448) not null, -- as long as package backoff allows
    created_at datetime(6)   not null
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- How far runs have come that report it. A row goes within minutes after its task.
create table if not exists {progress} (
    task_id    bigint      not null primary key,
    fence      bigint      not null, -- the task's fence in the run that reported it
    millionths int         not null, -- of the work
    message    mediumtext  not null,
    updated_at datetime(6) not null
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- Steps of handlers, which do not run again once they have a result. The rows of a task are deleted with it, or within an hour.
create table if not exists {steps} (
    task_id     bigint       not null,
    n           int          not null,            -- the number of the step, from 1
    name        varchar(100) character set ascii collate ascii_bin not null,
    fence       bigint       not null,            -- the task's fence in the run that wrote last
    crashes     int          not null default 0,  -- runs that were lost while the step ran
    started_at  datetime(6)  not null,            -- when the step last began
    updated_at  datetime(6)  not null,
    step_cursor longtext,                         -- JSON: how far an unfinished step has come
    result      longtext,                         -- JSON, once the step is done
    primary key (task_id, n)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- Permits of limits. A limit of n has the permits 0 to n - 1. Each names the claim that
-- has it, (task_id, fence), and is free again when that claim no longer lives.
create table if not exists {permits} (
    id          bigint       not null auto_increment primary key,
    name        varchar(320) character set ascii collate ascii_bin not null, -- of the limit
    n           int          not null,
    task_id     bigint       not null default 0,
    fence       bigint       not null default 0,
    token       bigint       not null default 0,            -- a random number of whoever took it last
    taken_until datetime(6)  not null default '1970-01-01', -- of a rate: free from then on
    unique (name, n)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- Unique keys. A key is the hash of what no two tasks may have in common, and names the
-- task that holds it, or held it last.
create table if not exists {uniques} (
    hash       char(43) character set ascii collate ascii_bin not null primary key,
    task_id    bigint      not null,
    token      bigint      not null, -- a random number of whoever took it last
    was        bigint      not null, -- the token before
    held_until datetime(6) not null  -- the key is held until then, whatever becomes of the task
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- What people have asked of all workers, as a history. Workers read what is new every second.
create table if not exists {changes} (
    id         bigint       not null auto_increment primary key,
    created_at datetime(6)  not null,
    subject    varchar(255) character set ascii collate ascii_bin not null, -- such as queue:default
    what       varchar(16)  character set ascii collate ascii_bin not null, -- pause, resume, cancel, policy, clear policy
    value      text         not null,                      -- of a cancel: the fence of the claim; of a policy: its steps
    ends_at    datetime(6)  not null default '1970-01-01', -- of a pause or a policy; 1970 is never
    who        varchar(255) not null,
    why        text         not null,
    index {recent} (created_at)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- The workers that run, as they announce themselves every 15 seconds. A worker that ends
-- removes its row, and others remove that of one that has died.
create table if not exists {workers} (
    id         varchar(100) character set ascii collate ascii_bin not null primary key,
    started_at datetime(6)  not null,
    seen_at    datetime(6)  not null,           -- when it last announced itself
    running    int          not null default 0, -- handlers
    done       bigint       not null default 0, -- tasks that succeeded since the start
    failed     bigint       not null default 0, -- attempts that failed since the start
    recent     mediumtext,                      -- JSON: how the runs of each kind have ended in the last five minutes
    info       mediumtext   not null            -- JSON: host, process, release, queues, kinds with their policies and limits
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- Schedules of periodic tasks. Of all that see a schedule due, the one that moves next_at
-- enqueues the task.
create table if not exists {schedules} (
    name         varchar(100) character set ascii collate ascii_bin not null primary key,
    spec         text         not null, -- a cron expression, or @every and a duration
    zone         varchar(100) character set ascii collate ascii_bin not null, -- by whose clock, such as Europe/Berlin
    missed       int          not null, -- what becomes of missed ticks: -1 nothing, 0 one task, n up to n tasks
    alone        int          not null, -- 1: no task while the last one is not finished
    per_tick     int          not null, -- 1: the program makes the task of each tick, of this queue and kind
    queue        varchar(100) character set ascii collate ascii_bin not null, -- of the tasks, as all that follows
    kind         varchar(100) character set ascii collate ascii_bin not null,
    priority     smallint     not null,
    task_key     varchar(128) character set ascii collate ascii_bin not null,
    max_attempts int          not null,
    payload      longtext     not null, -- JSON
    metadata     text,                  -- JSON
    hash         char(43)     character set ascii collate ascii_bin not null, -- of all of the above
    defined_by   varchar(255) not null,
    defined_at   datetime(6)  not null,
    started_at   datetime(6)  not null, -- from where intervals count
    next_at      datetime(6)  not null,
    last_at      datetime(6)  not null default '1970-01-01', -- when a task was last enqueued
    last_task    bigint       not null default 0,
    asked_at     datetime(6)  not null default '1970-01-01', -- since when a process with another definition asks who has this one
    paused       int          not null default 0,
    paused_at    datetime(6)  not null default '1970-01-01', -- of a paused one, as all that follows
    paused_by    varchar(255) not null, -- who paused it
    paused_why   text         not null
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- Blocked tasks, which run after others, with what the others' deaths mean to them.
create table if not exists {flows} (
    task_id  bigint not null primary key,
    on_death int    not null -- 0 wait, 1 cancel, 2 run anyway, 3 run at the first death
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- Which task runs after which. Each row of a task that has ended says how.
create table if not exists {edges} (
    task_id bigint not null,
    waiter  bigint not null, -- the task that runs after it
    outcome varchar(9) character set ascii collate ascii_bin not null default '', -- done, dead, cancelled, deleted
    primary key (task_id, waiter),
    index {waiters} (waiter, outcome, task_id)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- Sums of the runs that have ended in a span of 60, 600 or 3600 seconds, and what waited in it, of a
-- queue and a kind. Workers add to them once a minute.
create table if not exists {minutes} (
    span          int not null, -- in seconds
    at            datetime(6) not null, -- when the span begins, UTC
    queue         varchar(100) character set ascii collate ascii_bin not null,
    kind          varchar(100) character set ascii collate ascii_bin not null, -- '' stands for all kinds beyond the first 200
    started       bigint not null default 0, -- runs that began
    done          bigint not null default 0, -- tasks that succeeded
    failed        bigint not null default 0, -- attempts that failed, after which the task waits
    dead          bigint not null default 0, -- tasks that failed for the last time
    snoozed       bigint not null default 0, -- runs that snoozed their task
    cancelled     bigint not null default 0, -- runs whose task was cancelled or deleted
    lost          bigint not null default 0, -- runs that lost their lease
    expired       bigint not null default 0, -- tasks that had not started in time
    run_us        bigint not null default 0, -- how long handlers ran, in total
    run_max_us    bigint not null default 0, -- the longest run
    lag_us        bigint not null default 0, -- how late runs began, in total
    lag_max_us    bigint not null default 0, -- the latest one
    -- Runs by their length, and by how late they began: up to 10 ms, 100 ms, 1 s, 10 s, 1 min, 10 min, 1 h, more.
    run_0         bigint not null default 0,
    run_1         bigint not null default 0,
    run_2         bigint not null default 0,
    run_3         bigint not null default 0,
    run_4         bigint not null default 0,
    run_5         bigint not null default 0,
    run_6         bigint not null default 0,
    run_7         bigint not null default 0,
    lag_0         bigint not null default 0,
    lag_1         bigint not null default 0,
    lag_2         bigint not null default 0,
    lag_3         bigint not null default 0,
    lag_4         bigint not null default 0,
    lag_5         bigint not null default 0,
    lag_6         bigint not null default 0,
    lag_7         bigint not null default 0,
    waiting       bigint, -- an estimate of the tasks that have not ended; null if none was made, as in all that follows
    dead_now      bigint, -- an estimate of the dead tasks
    oldest_due_us bigint, -- for how long the first due task had waited
    primary key (span, at, queue, kind)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- Measurements of the whole database: row 1 has the number of tasks, row 2 the state for metrics. Of all processes
-- that find a row old, the one that moves at measures anew.
create table if not exists {sample} (
    id     int not null primary key,
    at     datetime(6) not null,
    sample mediumtext -- JSON
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

insert into {sample} (id, at) values (1, '1970-01-01'), (2, '1970-01-01') on duplicate key update at = at;

-- What people have done through the web page or the command, for people.
create table if not exists {audit} (
    id         bigint       not null auto_increment primary key,
    created_at datetime(6) not null,
    who        varchar(255) not null,
    why        text         not null,
    action     varchar(255) not null,           -- such as retry
    target     text         not null,           -- such as task 5, or the filter of many tasks
    changed    bigint not null default 0, -- how many tasks, schedules, pauses or policies
    index {audited} (created_at)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- +goose Down
-- +goose NO TRANSACTION
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
