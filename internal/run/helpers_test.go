package run

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// noObserver is told of everything, and does nothing.
type noObserver struct{}

func (noObserver) Started(*Run)                                    {}
func (noObserver) Ended(*Run, outcome.Outcome, time.Duration)      {}
func (noObserver) Settled(int, store.Unsettled, time.Time, error)  {}
func (noObserver) Extended(int, store.Unsettled, time.Time, error) {}

// fakeSettles is a table with a function for settles, and a class for errors.
type fakeSettles struct {
	settle func(ctx context.Context, batch []*store.Settlement) (store.Unsettled, error)
	class  dialect.Class
}

func (f *fakeSettles) Settle(ctx context.Context, _ string, batch []*store.Settlement) (store.Unsettled, error) {
	return f.settle(ctx, batch)
}

func (f *fakeSettles) SettleUnlocked(ctx context.Context, _ string, batch []*store.Settlement) (store.Unsettled, error) {
	return f.settle(ctx, batch)
}

func (f *fakeSettles) Ended([]*store.Claim) {}

func (f *fakeSettles) Classify(error) dialect.Class { return f.class }

// noPermits is a table of leases that are not extended.
type noPermits struct{}

func (noPermits) Extend(context.Context, string, time.Duration, []store.Key) (left store.Unsettled, _ error) {
	return left, nil
}

func (noPermits) ExtendLive(context.Context, string, time.Duration, []store.Key) (left store.Unsettled, _ error) {
	return left, nil
}

func (noPermits) FreePermits(context.Context, []*store.Claim) error { return nil }
func (noPermits) Classify(error) dialect.Class                      { return dialect.Other }

// newLeases returns a set of leases that nothing extends.
func newLeases() *lease.Extender {
	return lease.NewExtender("me", time.Minute, lease.NewSet(), noPermits{}, nil, noObserver{}, slog.New(slog.DiscardHandler))
}

// settlesTx is a table that settles tasks in transactions.
type settlesTx func(e *store.Settlement) (bool, error)

func (settlesTx) Attempts(context.Context, int64) ([]store.Attempt, error) { return nil, nil }

func (s settlesTx) SettleTx(_ context.Context, _ store.Tx, _ string, e *store.Settlement) (bool, error) {
	return s(e)
}

// writesProgress is a table that stores progress.
type writesProgress func(list []store.Progress) (stored map[int64]bool, err error)

func (w writesProgress) WriteProgress(_ context.Context, _ string, list []store.Progress) (map[int64]bool, error) {
	return w(list)
}

// noWaker wakes no poller.
type noWaker struct{}

func (noWaker) Hint(string, store.Lane, time.Duration) bool { return false }
func (noWaker) Freed([]string)                              {}
func (noWaker) WakeWaiting()                                {}

// readerOf returns a reader of changes.
func readerOf(changes func(context.Context, time.Duration) ([]store.StoredChange, error)) *control.ChangeReader {
	log, report := slog.New(slog.DiscardHandler), control.NewHealthReport()
	return control.NewChangeReader(controltest.Database{OnChanges: changes}, control.NewOverrides(controltest.Database{}, nil, controltest.Effects{}, report, log), controltest.Effects{}, report, log)
}

// paused returns a reader that has read a pause of a kind.
func paused(t *testing.T, kind string) *control.ChangeReader {
	t.Helper()
	r := readerOf(func(context.Context, time.Duration) ([]store.StoredChange, error) {
		c := store.StoredChange{ID: 1, Created: 1, Now: 1}
		c.Subject, c.What = control.Subject{Kind: kind}.String(), statements.ChangePause
		return []store.StoredChange{c}, nil
	})
	if err := r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}
