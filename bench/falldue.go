package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/pgnotify"
)

// falldueSubject is falldue. It has two pools, as two processes would: one for the
// worker and one for enqueueing.
type falldueSubject struct {
	name             string
	engine           string
	worker, producer *falldue.Queue
	pools            []*sqlx.DB
	pgxPools         []*pgxpool.Pool // below those; nil unless it is on pgx
	kind             falldue.Kind[payload]
	queue            string // of its kinds, "" for the default queue
	kinds            int    // how many others the worker handles as it does kind
}

// tomorrow is the policy of all kinds: a failed task does not run again during the
// measure.
var tomorrow = backoff.Constant(24 * time.Hour)

func newFalldue(name, engine string) *falldueSubject {
	return &falldueSubject{name: name, engine: engine, kind: falldue.NewKind[payload]("bench", falldue.KindConfig{Policy: tomorrow})}
}

// configOf returns the configuration that a measure wants. It listens only where the settings
// have a DSN for it.
func configOf(s settings) falldue.Config {
	cfg := falldue.Config{Concurrency: s.concurrency(), Hooks: s.hooks}
	if s.notify && s.listen != "" {
		cfg.Notifications.Listen = pgnotify.DSN(s.listen)
	}
	if s.queues == byPattern {
		cfg.Queues = map[string]falldue.QueueConfig{"queue.*": {}}
	}
	for i := range max(s.queues, 0) {
		if i == 0 {
			cfg.Queues = map[string]falldue.QueueConfig{}
		}
		cfg.Queues[fmt.Sprint("queue.", i)] = falldue.QueueConfig{}
	}
	switch s.done {
	case kept:
		cfg.DoneRetention = time.Hour
	case keptBriefly:
		cfg.DoneRetention = time.Second
	case keptForMinutes:
		cfg.DoneRetention = soakRetention
	}
	return cfg
}

func openFalldue(v variant) open {
	return func(ctx context.Context, db database, s settings) (subject, error) {
		f, cfg := newFalldue(map[variant]string{tuned: tunedName, defaults: defaultName}[v], db.server.engine), configOf(s)
		if s.queues != 0 {
			f.queue = "queue.0"
			f.kind = falldue.NewKind[payload]("bench", falldue.KindConfig{Policy: tomorrow, Queue: f.queue})
		}
		f.kinds = s.kinds
		f.limit(s)
		if v == tuned && s.notify && f.engine == postgres {
			cfg.Notifications.Listen = pgnotify.DSN(db.dsn)
		}
		for _, q := range []**falldue.Queue{&f.worker, &f.producer} {
			pool, err := db.open()
			if err != nil {
				return nil, err
			}
			f.pools = append(f.pools, pool)
			if *q, err = falldue.New(pool, cfg); err != nil {
				f.close()
				return nil, err
			}
		}
		return f, f.worker.Migrate(ctx)
	}
}

// limit limits, orders or weighs the tasks of each key if the settings want it.
func (f *falldueSubject) limit(s settings) {
	if s.limited {
		f.kind = falldue.NewKind[payload]("bench", falldue.KindConfig{Policy: tomorrow, Limits: []falldue.Limit{falldue.AtMost(perKey).PerKey()}})
	}
	if s.tenants {
		f.kind = falldue.NewKind[payload]("bench", falldue.KindConfig{Policy: tomorrow, Limits: tenantLimits})
	}
	if s.weights {
		f.kind = falldue.NewKind[payload]("bench", falldue.KindConfig{Policy: tomorrow, Weight: weightOf})
	}
	if s.ordered {
		f.kind = falldue.NewKind[payload]("bench", falldue.KindConfig{Policy: tomorrow, Limits: []falldue.Limit{falldue.InOrder()}})
	}
}

func (f *falldueSubject) close() {
	for _, pool := range f.pools {
		_ = pool.Close()
	}
	for _, pool := range f.pgxPools {
		pool.Close()
	}
}

func (f *falldueSubject) insert(ctx context.Context, n int) error { return f.store(ctx, n, perCall) }

// copyIn relies on falldue, which stores this many tasks by COPY.
func (f *falldueSubject) copyIn(ctx context.Context, n int) error {
	if f.engine != postgres {
		return errors.ErrUnsupported
	}
	return f.store(ctx, n, perCopy)
}

func (f *falldueSubject) store(ctx context.Context, n, size int) error {
	return storeParts(ctx, n, size, producers, func(ctx context.Context, n int) error {
		args := make([]payload, n)
		for i := range args {
			args[i] = sample
		}
		_, err := f.kind.EnqueueMany(ctx, f.producer, args)
		return err
	})
}

func (f *falldueSubject) insertOne(ctx context.Context) error {
	_, err := f.kind.Enqueue(ctx, f.producer, sample)
	return err
}

func (f *falldueSubject) insertLocally(ctx context.Context) error {
	_, err := f.kind.Enqueue(ctx, f.worker, sample)
	return err
}

// insertWaiting writes rows like those that failed attempts leave.
func (f *falldueSubject) insertWaiting(ctx context.Context, n int) error {
	return insertSeries(ctx, f.pools[0], f.engine, n, `insert into falldue_tasks (queue, kind, attempts, fence, updated_at, created_at, first_attempted_at, attempted_at, payload)
		select 'default', 'waiting.' || (i %% 8), 1 + i %% 25, 1 + i %% 25, %[2]s, %[1]s, %[1]s, %[1]s, '`+encoded+`'`)
}

// tiDBRows is how many rows one statement inserts on TiDB, which limits the size of
// transactions.
const tiDBRows = 50_000

// insertSeries runs an insert of n rows, numbered by i. In the statement %[1]s
// stands for the time, %[2]s for a moment within the last 10 seconds, which
// differs between rows, %[3]s for that moment a day later, and %[4]s for a second of
// the last day. A percent sign is written twice.
func insertSeries(ctx context.Context, pool *sqlx.DB, engine string, n int, insert string) error {
	if n == 0 {
		return nil // a recursive series has a row at least
	}
	now, moment := "now()", "now() - i % 10000 * interval '1 millisecond'"
	later := moment + " + interval '1 day'"
	second := "now() - i % 86399 * interval '1 second'" // not of a whole day, which the numbers of lanes divide
	series, size := " from generate_series(%d, %d) as s(i)", n
	switch engine {
	case mySQL, mariaDB, tiDB:
		now, moment = "utc_timestamp(6)", "utc_timestamp(6) - interval (i % 10000) * 1000 microsecond"
		later, second = moment+" + interval 1 day", "utc_timestamp(6) - interval (i % 86399) second"
		series = " from (with recursive s as (select %d as i union all select i + 1 from s where i < %d) select i from s) s"
		if engine == tiDB {
			size = tiDBRows
		}
	case sqlite:
		now, moment = "unixepoch() * 1000000", "unixepoch() * 1000000 - i % 10000 * 1000"
		later, second = moment+" + 86400000000", "unixepoch() * 1000000 - i % 86399 * 1000000"
		series = " from (with recursive s(i) as (select %d union all select i + 1 from s where i < %d) select i from s) s"
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, set := range map[string][]string{
		mySQL:   {"set session cte_max_recursion_depth = 100000000", "set session sql_mode = concat(@@sql_mode, ',PIPES_AS_CONCAT')"},
		tiDB:    {"set session cte_max_recursion_depth = 100000000", "set session sql_mode = concat(@@sql_mode, ',PIPES_AS_CONCAT')"},
		mariaDB: {"set session max_recursive_iterations = 100000000", "set session sql_mode = concat(@@sql_mode, ',PIPES_AS_CONCAT')"},
	}[engine] {
		if _, err := conn.ExecContext(ctx, set); err != nil {
			return err
		}
	}
	for from := 1; from <= n; from += size {
		rows := fmt.Sprintf(series, from, min(n, from+size-1))
		if _, err := conn.ExecContext(ctx, fmt.Sprintf(insert, now, moment, later, second)+rows); err != nil {
			return err
		}
	}
	return nil
}

func (f *falldueSubject) work(ctx context.Context, handle func() error) (func() error, error) {
	falldue.Handle(f.worker, f.kind, func(context.Context, falldue.Task[payload]) error { return handle() })
	for i := range f.kinds {
		kind := falldue.NewKind[payload](fmt.Sprint("kind.", i), falldue.KindConfig{Policy: tomorrow})
		falldue.Handle(f.worker, kind, func(context.Context, falldue.Task[payload]) error { return handle() })
	}
	for i := range waitingKinds {
		kind := falldue.NewKind[payload](fmt.Sprintf("waiting.%d", i), falldue.KindConfig{Policy: tomorrow, Queue: f.queue})
		falldue.Handle(f.worker, kind, func(context.Context, falldue.Task[payload]) error {
			return errors.New("a task that is due tomorrow ran today")
		})
	}
	return startWorker(ctx, f.worker.Run)
}

// startWorker runs a worker in the background and returns the function that stops
// it. run works until its context ends.
func startWorker(ctx context.Context, run func(context.Context) error) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}
