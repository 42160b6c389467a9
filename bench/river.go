package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

// riverSubject is River on its own pool of pgx connections. Done jobs stay in its
// table until River's cleaner deletes them.
type riverSubject struct {
	variant  variant
	handlers int // 0: as many as the variant says
	db       database
	pools    []*pgxpool.Pool
	producer *river.Client[pgx.Tx]
}

type riverArgs payload

func (riverArgs) Kind() string { return "bench" }

func openRiver(v variant) open {
	return func(ctx context.Context, db database, s settings) (_ subject, err error) {
		if s.done == deleted {
			return nil, errors.ErrUnsupported
		}
		r := &riverSubject{variant: v, handlers: s.few, db: db}
		pool, err := r.pool(ctx)
		if err != nil {
			return nil, err
		}
		migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet})
		if err == nil {
			_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		}
		if err == nil {
			r.producer, err = river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
		}
		if err != nil {
			r.close()
		}
		return r, err
	}
}

// quiet discards the log, which has a line for each failed job.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// pool makes a pool. The worker and the enqueuer have one each, as two processes
// would.
func (r *riverSubject) pool(ctx context.Context) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(r.db.dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err == nil {
		r.pools = append(r.pools, pool)
	}
	return pool, err
}

func (r *riverSubject) close() {
	for _, pool := range r.pools {
		pool.Close()
	}
}

func (r *riverSubject) jobs(n int) []river.InsertManyParams {
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = riverArgs(sample)
	}
	return jobs
}

func (r *riverSubject) insert(ctx context.Context, n int) error {
	return storeParts(ctx, n, perCall, producers, func(ctx context.Context, n int) error {
		_, err := r.producer.InsertMany(ctx, r.jobs(n))
		return err
	})
}

func (r *riverSubject) copyIn(ctx context.Context, n int) error {
	return storeParts(ctx, n, perCopy, producers, func(ctx context.Context, n int) error {
		_, err := r.producer.InsertManyFast(ctx, r.jobs(n))
		return err
	})
}

func (r *riverSubject) insertOne(ctx context.Context) error {
	_, err := r.producer.Insert(ctx, riverArgs(sample), nil)
	return err
}

func (r *riverSubject) insertWaiting(ctx context.Context, n int) error {
	pool, err := sqlx.ConnectContext(ctx, "postgres", r.db.dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	return insertSeries(ctx, pool, postgres, n, `insert into river_job (kind, state, attempt, max_attempts, attempted_at, scheduled_at, args)
		select 'waiting.' || (i %% 8), 'retryable', 1 + i %% 25, 26, %[1]s, %[3]s, '`+encoded+`'`)
}

// retryTomorrow is the retry policy: a failed job does not run again during the
// measure.
type retryTomorrow struct{}

func (retryTomorrow) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(24 * time.Hour) }

func (r *riverSubject) work(ctx context.Context, handle func() error) (func() error, error) {
	pool, err := r.pool(ctx)
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[riverArgs]) error { return handle() }))
	cfg := &river.Config{
		Logger: quiet, Workers: workers, RetryPolicy: retryTomorrow{},
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cmp.Or(r.handlers, handlers)}},
	}
	if r.variant == tuned {
		cfg.FetchCooldown, cfg.FetchPollInterval = time.Millisecond, 50*time.Millisecond
		cfg.Queues[river.QueueDefault] = river.QueueConfig{MaxWorkers: cmp.Or(r.handlers, 2*handlers)}
	}
	client, err := river.NewClient(riverpgxv5.New(pool), cfg)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return func() error { return client.Stop(context.WithoutCancel(ctx)) }, nil
}
