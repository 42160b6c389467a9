package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
)

// Benchmark configures [Measure].
type Benchmark struct {
	// Schema is the PostgreSQL schema for the tables, as in [falldue.Config].
	Schema string
	// Tasks is the number of tasks to store and to run, up to [MaxMeasured] (default 20,000).
	Tasks int
	// Handlers is the number of handlers that run concurrently (default 100).
	Handlers int
	// Starts is the number of tasks whose start is timed, up to [MaxMeasured] (default 200).
	Starts int
}

// MaxMeasured is the maximum number of tasks of a [Benchmark]. The limit keeps a caller from filling the disk by
// mistake.
const MaxMeasured = 10_000_000

// Measurement is one measure of a [Benchmark].
type Measurement struct {
	// Measure is the measured operation: "enqueue_one", "enqueue_many", "run" or "start".
	Measure string
	// Tasks is how many tasks were measured.
	Tasks int
	// PerSecond is how many tasks were stored or run in a second. For "start", it is 0.
	PerSecond float64
	// Half of the tasks started within Median after they were stored, and 99 of 100 within P99. Both are 0 for all other
	// measures.
	Median, P99 time.Duration
}

const (
	// measuredSingles is how long tasks are stored one by one, up to a quarter of them.
	measuredSingles = 2 * time.Second
	// measuredBatch is how many tasks are stored by a call otherwise.
	measuredBatch = 1000
	// dropTimeout is how long the tables may take to be dropped.
	dropTimeout = time.Minute
)

// Measure measures how many tasks a process can store and run on db, with handlers that do nothing. It also measures
// how soon a worker starts a task that another process has stored. It calls report with each [Measurement] as soon as the result
// is known. A quarter of the tasks, or as many as two seconds allow, are stored one by one, and the others 1,000 at a
// time. Then all tasks run. After that, more tasks are stored one by one, each when the previous task has started. If
// report returns an error, Measure ends with it.
//
// Measure creates separate tables, with names that no other tables have, and drops these tables when it ends, even
// after ctx has ended. The server is busy in the meantime. The results depend on the size of the pool: Measure uses
// about 20 connections.
func Measure(ctx context.Context, db *sqlx.DB, b Benchmark, report func(Measurement) error) (err error) {
	b.Tasks, b.Handlers, b.Starts = cmp.Or(b.Tasks, 20_000), cmp.Or(b.Handlers, 100), cmp.Or(b.Starts, 200)
	switch {
	case b.Tasks < 0 || b.Tasks > MaxMeasured:
		return invalid("Tasks %d: must be 1 to %d, or 0 for the default", b.Tasks, MaxMeasured)
	case b.Handlers < 0:
		return invalid("Handlers %d: must be 1 or more, or 0 for the default", b.Handlers)
	case b.Starts < 0 || b.Starts > MaxMeasured:
		return invalid("Starts %d: must be 1 to %d, or 0 for the default", b.Starts, MaxMeasured)
	}
	cfg := falldue.Config{
		Prefix: "falldue_bench_" + strings.ToLower(rand.Text()[:8]) + "_", Schema: b.Schema,
		Concurrency: b.Handlers, Logger: slog.New(slog.DiscardHandler),
	}
	q, err := falldue.New(db, cfg)
	if err != nil {
		return err
	}
	m, err := q.Migrations()
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
		defer cancel()
		if _, failed := m.Down(ctx); failed != nil {
			err = errors.Join(err, fmt.Errorf("drop the tables %s…: %w", cfg.Prefix, failed))
		}
	}()
	if err := q.Migrate(ctx); err != nil {
		return err
	}
	kind := falldue.NewKind[time.Time]("bench", falldue.KindConfig{})
	if err := b.store(ctx, q, kind, report); err != nil {
		return err
	}
	return b.work(ctx, db, cfg, kind, report)
}

// store stores the tasks, a part of them one by one.
func (b Benchmark) store(ctx context.Context, q *falldue.Queue, kind falldue.Kind[time.Time], report func(Measurement) error) error {
	n, start := 0, time.Now()
	for ; n < (b.Tasks+3)/4 && time.Since(start) < measuredSingles; n++ {
		if _, err := kind.Enqueue(ctx, q, time.Time{}); err != nil {
			return err
		}
	}
	if err := report(perSecond("enqueue_one", n, start)); err != nil || n == b.Tasks {
		return err
	}
	rest := make([]time.Time, b.Tasks-n)
	start = time.Now()
	for part := range slices.Chunk(rest, measuredBatch) {
		if _, err := kind.EnqueueMany(ctx, q, part); err != nil {
			return err
		}
	}
	return report(perSecond("enqueue_many", len(rest), start))
}

func perSecond(measure string, tasks int, start time.Time) Measurement {
	return Measurement{Measure: measure, Tasks: tasks, PerSecond: float64(tasks) / time.Since(start).Seconds()}
}

// work runs the tasks that are stored, and then some more one after the other. These are
// stored by a queue that has no worker, as in another process.
func (b Benchmark) work(ctx context.Context, db *sqlx.DB, cfg falldue.Config, kind falldue.Kind[time.Time], report func(Measurement) error) error {
	q, err := falldue.New(db, cfg)
	if err != nil {
		return err
	}
	other, err := falldue.New(db, cfg)
	if err != nil {
		return err
	}
	started := make(chan time.Time, b.Handlers)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	falldue.Handle(q, kind, func(ctx context.Context, _ falldue.Task[time.Time]) error {
		select {
		case started <- time.Now():
		case <-ctx.Done():
		}
		return nil
	})
	ended := make(chan error, 1)
	begin := time.Now()
	go func() { ended <- q.Run(ctx) }()
	next := func() (time.Time, error) {
		select {
		case at := <-started:
			return at, nil
		case err := <-ended:
			ended <- err
			return time.Time{}, errors.Join(err, ctx.Err())
		}
	}
	measure := func() error {
		for range b.Tasks {
			if _, err := next(); err != nil {
				return err
			}
		}
		if err := report(perSecond("run", b.Tasks, begin)); err != nil {
			return err
		}
		waits := make([]time.Duration, b.Starts)
		for i := range waits {
			stored := time.Now()
			if _, err := kind.Enqueue(ctx, other, stored); err != nil {
				return err
			}
			at, err := next()
			if err != nil {
				return err
			}
			waits[i] = at.Sub(stored)
		}
		slices.Sort(waits)
		return report(Measurement{Measure: "start", Tasks: b.Starts, Median: waits[len(waits)/2], P99: waits[len(waits)*99/100]})
	}
	err = measure()
	stop()
	return errors.Join(err, <-ended)
}
