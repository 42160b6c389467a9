package claim

import (
	"context"
	"log/slog"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/store"
)

// noObserver is told of everything, and does nothing.
type noObserver struct{}

func (noObserver) Swept(string, int, time.Time, error)                   {}
func (noObserver) Claimed(string, int, []*store.Claim, time.Time, error) {}

// fakeTable is a table whose statements are functions. Those that are nil find nothing.
type fakeTable struct {
	claim      func(store.ClaimParams) ([]*store.Claim, error)
	limited    func(store.ClaimParams) (store.Limited, error)
	keys       func(context.Context, store.ClaimParams, []store.Candidate) (store.Limited, error)
	candidates func(ctx context.Context, from store.Source, after int64, limit int) ([]store.Candidate, error)
	class      dialect.Class // of all errors, unless there is classify
	classify   func(error) dialect.Class
}

func (f fakeTable) Claim(_ context.Context, p store.ClaimParams) ([]*store.Claim, error) {
	if f.claim == nil {
		return nil, nil
	}
	return f.claim(p)
}

func (f fakeTable) ClaimLimited(_ context.Context, p store.ClaimParams) (store.Limited, error) {
	return f.limited(p)
}

func (f fakeTable) ClaimKeys(ctx context.Context, p store.ClaimParams, list []store.Candidate) (store.Limited, error) {
	return f.keys(ctx, p, list)
}

func (f fakeTable) Candidates(ctx context.Context, _ string, from store.Source, after int64, limit int) ([]store.Candidate, error) {
	return f.candidates(ctx, from, after, limit)
}

func (f fakeTable) Expire(context.Context, string, store.Lane, time.Duration, string) (store.Expired, error) {
	return store.Expired{}, nil
}

func (f fakeTable) Classify(err error) dialect.Class {
	if f.classify != nil {
		return f.classify(err)
	}
	return f.class
}

// fakeFinder finds lanes by functions. Those that are nil find nothing.
type fakeFinder struct {
	find func() ([]store.Head, error)
	look func([]store.Source) ([]store.Head, error)
}

func (f fakeFinder) Find(context.Context) ([]store.Head, error) {
	if f.find == nil {
		return nil, nil
	}
	return f.find()
}

func (f fakeFinder) Recheck(_ context.Context, sources []store.Source) ([]store.Head, error) {
	if f.look == nil {
		return nil, nil
	}
	return f.look(sources)
}

// noDispatcher runs nothing.
type noDispatcher struct{}

func (noDispatcher) Take([]*store.Claim, []*control.CompiledPolicy, time.Time) {}

// dispatchFunc is called with each batch of claims.
type dispatchFunc func()

func (f dispatchFunc) Take([]*store.Claim, []*control.CompiledPolicy, time.Time) { f() }

// idleSettler is never behind.
type idleSettler struct{}

func (idleSettler) Behind() bool { return false }

// noOutage is the outage of a sweeper without a poller.
func noOutage() *outage { return &outage{woken: make(chan struct{}, 1)} }

// noRules knows the delay of no lane, and no limits.
type noRules struct{}

func (noRules) DelayOf(store.Lane) (time.Duration, bool) { return 0, false }
func (noRules) Limited(store.Lane) bool                  { return false }

// changesTable is a table of changes.
type changesTable interface {
	Changes(ctx context.Context, back time.Duration) ([]store.StoredChange, error)
}

// readerOf returns a reader of changes.
func readerOf(table changesTable) *control.ChangeReader {
	log, report := slog.New(slog.DiscardHandler), control.NewHealthReport()
	overrides := control.NewOverrides(controltest.Database{}, nil, controltest.Effects{}, report, log)
	return control.NewChangeReader(table, overrides, controltest.Effects{}, report, log)
}

var classes = []dialect.Class{
	dialect.Other, dialect.UniqueViolation, dialect.Contention, dialect.Unavailable, dialect.Disconnected,
	dialect.UndefinedTable, dialect.PreparedStatementMissing,
}
