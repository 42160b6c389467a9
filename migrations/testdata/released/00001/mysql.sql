-- 00001_tasks.sql

-- A task is due when state is open and updated_at + f(attempts) has passed,
-- f being the delay of its policy; or when state is snoozed and updated_at has.
-- All moments are UTC. The one index serves everything: claims, sweeps, lists
-- and cleaning. All rows of one (queue, state, priority, kind, policy,
-- attempts) wait equally long, so that those due are a prefix of updated_at.
-- What a claim writes has the same size before and after: rows that grow make
-- InnoDB split pages, which costs as much as the claim itself.
create table if not exists `falldue_tasks` (
    id                 bigint       not null auto_increment primary key,
    queue              varchar(100) character set ascii collate ascii_bin not null,
    kind               varchar(100) character set ascii collate ascii_bin not null,
    policy             varchar(16)  character set ascii collate ascii_bin not null default '', -- key in `falldue_policies`; '' is the kind's own
    priority           smallint     not null default 0,     -- lower first
    state              varchar(9)   character set ascii collate ascii_bin not null default 'open'
                       check (state in ('open', 'snoozed', 'done', 'dead', 'cancelled')),
    attempts           int          not null default 0,     -- executions that count
    max_attempts       int          not null default 0,     -- 0 is the policy's own
    fence              bigint       not null default 0,     -- claims so far, never goes down
    updated_at         datetime(6)  not null,               -- the moment the wait counts from
    created_at         datetime(6)  not null,
    first_attempted_at datetime(6)  not null default '1970-01-01', -- start of attempt 1, when there was one
    attempted_at       datetime(6)  not null default '1970-01-01', -- start of the latest run
    claimed_by         char(40) character set ascii collate ascii_bin not null default '', -- the worker that runs it
    last_error         mediumtext,
    payload            longtext     not null,               -- JSON
    result             longtext,                            -- JSON
    index `falldue_lane` (queue, state, priority, kind, policy, attempts, updated_at)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- What went wrong, attempt by attempt.
create table if not exists `falldue_attempts` (
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

-- Policies that tasks were enqueued with, by the key of their text.
create table if not exists `falldue_policies` (
    `key`      varchar(16)   character set ascii collate ascii_bin not null primary key,
    policy     varchar(8000) not null,
    created_at datetime(6)   not null
) engine = InnoDB default character set utf8mb4 collate utf8mb4_bin;

-- versions

create table `falldue_migrations` (version bigint not null primary key, applied_at timestamp not null default current_timestamp);
insert into `falldue_migrations` (version) values (0), (1);
