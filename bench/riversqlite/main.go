// Riversqlite runs River on SQLite for the benchmarks. It is a separate program and
// module, because River's driver for SQLite is published for an older version of
// River than its driver for PostgreSQL. The benchmarks start it and call [River]
// over its standard input and output.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/rpc"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	_ "modernc.org/sqlite" // driver sqlite
)

// River has the methods that are called by net/rpc. Each has one argument and a
// result; neither has a meaning where it is named _.
type River struct {
	pool   *sql.DB
	client *river.Client[*sql.Tx]
	fails  bool

	mu      sync.Mutex
	ran     int           // handlers that ran since the last Ran
	signal  chan struct{} // has an element when ran is not 0
	stopped chan struct{} // closed by Stop
}

// Options is the argument of Open.
type Options struct {
	DSN      string
	Handlers int
	Tuned    bool // set for throughput
	Fails    bool // handlers return errors
}

type args struct {
	Text string `json:"text"`
}

func (args) Kind() string { return "bench" }

var sample = args{strings.Repeat("x", 89)}

type retryTomorrow struct{}

func (retryTomorrow) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(24 * time.Hour) }

func main() {
	r := &River{signal: make(chan struct{}, 1), stopped: make(chan struct{})}
	if err := rpc.Register(r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rpc.ServeConn(stdio{os.Stdin, os.Stdout})
}

type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return nil }

// Open creates the tables.
func (r *River) Open(o Options, _ *bool) (err error) {
	if r.pool, err = sql.Open("sqlite", o.DSN); err != nil {
		return err
	}
	r.pool.SetMaxOpenConns(1) // as River's documentation asks for
	r.fails = o.Fails
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	migrator, err := rivermigrate.New(riversqlite.New(r.pool), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(context.Background(), rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(r.handle))
	cfg := &river.Config{
		Logger: quiet, Workers: workers, RetryPolicy: retryTomorrow{},
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.Handlers}},
	}
	if o.Tuned {
		cfg.FetchCooldown, cfg.FetchPollInterval = time.Millisecond, 50*time.Millisecond
	}
	r.client, err = river.NewClient(riversqlite.New(r.pool), cfg)
	return err
}

func (r *River) handle(context.Context, *river.Job[args]) error {
	r.mu.Lock()
	r.ran++
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default:
	}
	if r.fails {
		return errors.New("the handler failed: connection refused by 192.0.2.1:443")
	}
	return nil
}

// Ran waits until a handler has run, and returns how many ran since the last call.
func (r *River) Ran(_ bool, n *int) error {
	select {
	case <-r.signal:
	case <-r.stopped:
		return errors.New("stopped")
	}
	r.mu.Lock()
	*n, r.ran = r.ran, 0
	r.mu.Unlock()
	return nil
}

// Insert stores n jobs at once.
func (r *River) Insert(n int, _ *bool) error {
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = sample
	}
	_, err := r.client.InsertMany(context.Background(), jobs)
	return err
}

// InsertOne stores a job.
func (r *River) InsertOne(_ bool, _ *bool) error {
	_, err := r.client.Insert(context.Background(), sample, nil)
	return err
}

// InsertWaiting stores n jobs for tomorrow: one by River, and copies of that.
func (r *River) InsertWaiting(n int, _ *bool) error {
	job, err := r.client.Insert(context.Background(), sample, &river.InsertOpts{ScheduledAt: time.Now().Add(24 * time.Hour)})
	if err != nil {
		return err
	}
	_, err = r.pool.Exec(`insert into river_job (args, attempt, created_at, kind, max_attempts, metadata, priority, queue, state, scheduled_at, tags)
		with recursive s(i) as (select 1 union all select i + 1 from s where i < ?)
		select args, 1 + i % 25, created_at, 'waiting.' || (i % 8), 26, metadata, priority, queue, state, scheduled_at, tags from river_job, s where id = ?`, n-1, job.Job.ID)
	return err
}

// Start starts the worker.
func (r *River) Start(_ bool, _ *bool) error { return r.client.Start(context.Background()) }

// Stop stops the worker when all jobs that ran are settled.
func (r *River) Stop(_ bool, _ *bool) error {
	defer close(r.stopped)
	return r.client.Stop(context.Background())
}
