package claim

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// noObserver is told of everything, and does nothing.
type noObserver struct{}

func (noObserver) Swept(string, int, time.Time, error)                   {}
func (noObserver) Claimed(string, int, []*store.Claim, time.Time, error) {}

// fakeTable is a table with functions for statements. A nil function finds nothing.
type fakeTable struct {
	claim       func(store.ClaimParams) ([]*store.Claim, error)
	limited     func(store.ClaimParams) (store.Limited, error)
	keys        func(context.Context, store.ClaimParams, []store.Candidate) (store.Limited, error)
	candidates  func(ctx context.Context, from store.Source, after int64, limit int) ([]store.Candidate, error)
	expireDated func() (store.Expired, error)
	slotHolders func() (string, error)
	class       dialect.Class // of all errors, unless there is classify
	classify    func(error) dialect.Class
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

func (f fakeTable) ExpireDated(context.Context, string, store.Lane, string) (store.Expired, error) {
	if f.expireDated != nil {
		return f.expireDated()
	}
	return store.Expired{}, nil
}

func (f fakeTable) SlotHolders(context.Context, int64) (string, error) {
	if f.slotHolders == nil {
		return "", nil
	}
	return f.slotHolders()
}

func (f fakeTable) Classify(err error) dialect.Class {
	if f.classify != nil {
		return f.classify(err)
	}
	return f.class
}

// fakeFinder finds lanes with functions. A nil function finds nothing.
type fakeFinder struct {
	find func() ([]store.Head, error)
	look func([]store.Source) ([]store.Head, error)
}

func (f fakeFinder) Find(_ context.Context, places []store.Place, _ int) (found []store.Found, rest []store.Place, err error) {
	if f.find == nil {
		return nil, nil, nil
	}
	heads, err := f.find()
	if err != nil {
		return nil, places, err
	}
	for _, h := range heads {
		found = append(found, store.Found{Queue: places[0].Queue, Head: h})
	}
	return found, nil, nil
}

func (f fakeFinder) Recheck(_ context.Context, _ string, sources []store.Source) ([]store.Head, error) {
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

// newTestPoller returns a poller with a sweeper of its own, which uses a finder.
func newTestPoller(cfg PollerConfig, f finder) *Poller {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Table == nil {
		cfg.Table = fakeTable{}
	}
	if cfg.Budget == nil {
		cfg.Budget = run.NewBudget(1, 0)
	}
	if cfg.Policies == nil {
		cfg.Policies = policiesOf(nil)
	}
	cfg.All, cfg.Observer, cfg.Settler = noUnknown(), noObserver{}, idleSettler{}
	cfg.Sweeper = NewSweeper(f, cfg.All, cfg.Table.Classify, cfg.Log, noObserver{})
	p := NewPoller(cfg)
	cfg.All.Add(p)
	return p
}

// work lets a poller and its sweeper work until ctx ends.
func (p *Poller) work(ctx context.Context) {
	var sweeping sync.WaitGroup
	sweeping.Go(func() { p.Sweeper.Work(ctx) })
	p.Loop(ctx)
	sweeping.Wait()
}

// searchNow makes the next search of a poller's queue, even if it is not due yet.
func (p *Poller) searchNow(ctx context.Context) error {
	p.search.at = time.Now()
	for {
		if _, err := p.Sweeper.round(ctx); err != nil || p.search.sweep == nil || p.search.sweep.failures > 0 {
			return err
		}
	}
}

// searchWhenDue waits until a search of a poller's queue is due, and makes it.
func (p *Poller) searchWhenDue(ctx context.Context) {
	time.Sleep(time.Until(p.Sweeper.next()))
	_, _ = p.Sweeper.round(ctx)
}

// nextSearch returns when the next search of a poller's queue is due.
func (p *Poller) nextSearch() time.Time { return p.search.at }

// changesTable is a table of changes.
type changesTable interface {
	Changes(ctx context.Context, back time.Duration) ([]store.StoredChange, error)
}

// readerOf returns a reader of changes.
func readerOf(table changesTable) *control.ChangeReader {
	return control.NewChangeReader(table, noOverrides(), controltest.Effects{}, control.NewHealthReport(), slog.New(slog.DiscardHandler))
}

// noOverrides returns overrides, none of them in effect.
func noOverrides() *control.Overrides {
	return control.NewOverrides(controltest.Database{}, nil, controltest.Effects{}, control.NewHealthReport(), slog.New(slog.DiscardHandler))
}

// policiesOf returns policies of kinds, without pauses, overrides and per-task policies.
func policiesOf(kinds map[string]*control.CompiledPolicy) *control.Policies {
	return control.NewPolicies("default", kinds, readerOf(nil), nil, noOverrides())
}

var classes = []dialect.Class{
	dialect.Other, dialect.UniqueViolation, dialect.Contention, dialect.Unavailable, dialect.Disconnected,
	dialect.UndefinedTable, dialect.PreparedStatementMissing,
}

// noUnknown returns pollers of a worker without patterns.
func noUnknown() *Pollers { return NewPollers(func(string) bool { return false }) }
