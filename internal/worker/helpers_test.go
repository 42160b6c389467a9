package worker

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/upkeep"
	"github.com/falldue/falldue/migrations"
)

// noObserver is told of everything, and does nothing.
type noObserver struct{}

func (noObserver) Overtime(*run.Run, time.Duration)                      {}
func (noObserver) Started(*run.Run)                                      {}
func (noObserver) Ended(*run.Run, outcome.Outcome, time.Duration)        {}
func (noObserver) Settled(int, store.Unsettled, time.Time, error)        {}
func (noObserver) Extended(int, store.Unsettled, time.Time, error)       {}
func (noObserver) Trouble(string, string, error)                         {}
func (noObserver) Swept(string, int, time.Time, error)                   {}
func (noObserver) Claimed(string, int, []*store.Claim, time.Time, error) {}

// migrated returns a store on a database with tables.
func migrated(t *testing.T, engine string) *store.Store {
	t.Helper()
	db, tables := testdb.Open(t, engine), dialect.Tables{Prefix: "falldue_"}
	server, err := dialect.Probe(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	m, err := migrations.New(db.DB, server, tables)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store.New(db, server, store.Options{Tables: tables})
}

// idle returns a worker on SQLite that does not run, with defaults for zero fields of cfg.
func idle(t *testing.T, ctx context.Context, cfg Config) *Worker {
	t.Helper()
	return idleOn(ctx, migrated(t, testdb.SQLite), cfg)
}

// idleOn returns a worker that does not run, with defaults for zero fields of cfg.
func idleOn(ctx context.Context, s *store.Store, cfg Config) *Worker {
	if cfg.Lease == 0 {
		cfg.Lease = time.Minute
	}
	cfg.ID, cfg.PollInterval, cfg.Log = "me", time.Second, slog.New(slog.DiscardHandler)
	if cfg.Queues == nil {
		cfg.Queues = map[string]Queue{"default": {Concurrency: 10, MaxPrefetch: 1000}}
	}
	return New(ctx, func() {}, cfg, s, upkeep.NewPolicyStore(s, cfg.Log), noObserver{})
}

// endedRun returns a run of the worker that has ended.
func endedRun(w *Worker) *run.Run {
	r := new(run.Run)
	w.dispatchers["default"].Begin(r, &store.Claim{}, control.Compile(backoff.Zizq()), time.Now())
	return r
}
