package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
)

func benchCommand() *cobra.Command {
	var p place
	b := bench{}
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how many tasks this server can store and run",
		Long: "Measure how many tasks a process can store and run on this server, by handlers that do\n" +
			"nothing, and how soon a worker starts a task that another process has stored. The\n" +
			"command makes tables of its own, with names that no other tables have, and drops them\n" +
			"at its end, also when it is interrupted. The server works hard meanwhile: it asks\n" +
			"first, or wants --yes. The user needs the right to create tables.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.tasks < 1 || b.tasks > maxBenchTasks || b.handlers < 1 || b.starts < 1 || b.starts > maxBenchTasks {
				return mistake(fmt.Errorf("--tasks %d, --handlers %d, --starts %d; allowed are 1 and more, and up to %d tasks and starts", b.tasks, b.handlers, b.starts, maxBenchTasks))
			}
			b.cfg = falldue.Config{
				Prefix: "falldue_bench_" + strings.ToLower(rand.Text()[:8]) + "_", Schema: p.tables.Schema,
				Concurrency: b.handlers, Logger: slog.New(slog.DiscardHandler),
			}
			what := fmt.Sprintf("bench creates tables whose names begin with %s, stores and runs %s tasks as fast as it can, and drops the tables", b.cfg.Prefix, grouped(int64(b.tasks)))
			if err := confirm(cmd, what, yes); err != nil {
				return err
			}
			return p.open(cmd.Context(), func(db *sqlx.DB) error {
				return b.run(cmd.Context(), db, func(m measured) error {
					if asJSON {
						return jsonLines(cmd.OutOrStdout()).Encode(m)
					}
					_, err := fmt.Fprintln(cmd.OutOrStdout(), m)
					return err
				})
			})
		},
	}
	p.databaseFlags(cmd)
	cmd.Flags().StringVar(&p.tables.Schema, "schema", "", "PostgreSQL schema of the tables (default the connection's search path)")
	cmd.Flags().IntVar(&b.tasks, "tasks", 20_000, "number of tasks to run")
	cmd.Flags().IntVar(&b.handlers, "handlers", 100, "number of handlers that run at once")
	cmd.Flags().IntVar(&b.starts, "starts", 200, "number of tasks whose start is timed")
	yesFlag(cmd, &yes)
	jsonFlag(cmd, &asJSON, "print one JSON object per line: measure, tasks, and per_second, or median_seconds and p99_seconds")
	return cmd
}

// maxBenchTasks keeps somebody from filling the disk by a mistake.
const maxBenchTasks = 10_000_000

// bench measures a server.
type bench struct {
	tasks, handlers, starts int
	cfg                     falldue.Config
}

// measured is what was measured.
type measured struct {
	Measure   string  `json:"measure"`
	Tasks     int     `json:"tasks"`
	PerSecond float64 `json:"per_second,omitempty"`
	Median    float64 `json:"median_seconds,omitempty"`
	P99       float64 `json:"p99_seconds,omitempty"`
}

func (m measured) String() string {
	if m.PerSecond > 0 {
		return fmt.Sprintf("%-12s %10s tasks a second", m.Measure, grouped(int64(m.PerSecond)))
	}
	return fmt.Sprintf("%-12s %10s at the median, %s for 99 of 100 tasks", m.Measure, seconds(m.Median), seconds(m.P99))
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Microsecond).String()
}

const (
	// benchSingles is how long tasks are stored one by one, up to a quarter of them.
	benchSingles = 2 * time.Second
	// benchBatch is how many tasks are stored by a call otherwise.
	benchBatch = 1000
	// benchConnections is the size of the pool.
	benchConnections = 20
	// dropTimeout is how long the tables may take to be dropped.
	dropTimeout = time.Minute
)

// run measures, in tables that it creates and drops.
func (b bench) run(ctx context.Context, db *sqlx.DB, report func(measured) error) (err error) {
	db.SetMaxIdleConns(benchConnections)
	db.SetMaxOpenConns(benchConnections)
	q, err := falldue.New(db, b.cfg)
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
			err = errors.Join(err, fmt.Errorf("drop the tables %s…: %w", b.cfg.Prefix, failed))
		}
	}()
	if err := q.Migrate(ctx); err != nil {
		return err
	}
	kind := falldue.NewKind[time.Time]("bench", falldue.KindConfig{})
	n, start := 0, time.Now()
	for ; n < (b.tasks+3)/4 && time.Since(start) < benchSingles; n++ {
		if _, err := kind.Enqueue(ctx, q, time.Time{}, nil); err != nil {
			return err
		}
	}
	if err := report(perSecond("enqueue one", n, start)); err != nil {
		return err
	}
	rest := make([]time.Time, b.tasks-n)
	start = time.Now()
	for part := range slices.Chunk(rest, benchBatch) {
		if _, err := kind.EnqueueMany(ctx, q, part, nil); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		if err := report(perSecond("enqueue many", len(rest), start)); err != nil {
			return err
		}
	}
	return b.work(ctx, db, kind, report)
}

func perSecond(measure string, tasks int, start time.Time) measured {
	return measured{Measure: measure, Tasks: tasks, PerSecond: float64(tasks) / time.Since(start).Seconds()}
}

// work runs the tasks that are stored, and then some more one after the other. These are
// stored by a queue that has no worker, as in another process.
func (b bench) work(ctx context.Context, db *sqlx.DB, kind falldue.Kind[time.Time], report func(measured) error) error {
	q, err := falldue.New(db, b.cfg)
	if err != nil {
		return err
	}
	other, err := falldue.New(db, b.cfg)
	if err != nil {
		return err
	}
	started := make(chan time.Time, b.handlers)
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
		for range b.tasks {
			if _, err := next(); err != nil {
				return err
			}
		}
		if err := report(perSecond("run", b.tasks, begin)); err != nil {
			return err
		}
		waits := make([]float64, b.starts)
		for i := range waits {
			stored := time.Now()
			if _, err := kind.Enqueue(ctx, other, stored, nil); err != nil {
				return err
			}
			at, err := next()
			if err != nil {
				return err
			}
			waits[i] = at.Sub(stored).Seconds()
		}
		slices.Sort(waits)
		return report(measured{Measure: "start", Tasks: b.starts, Median: waits[len(waits)/2], P99: waits[len(waits)*99/100]})
	}
	err = measure()
	stop()
	return errors.Join(err, <-ended)
}
