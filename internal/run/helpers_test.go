package run

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// noObserver is told of everything, and does nothing.
type noObserver struct{}

func (noObserver) Overtime(*Run, time.Duration)                    {}
func (noObserver) Started(*Run)                                    {}
func (noObserver) Ended(*Run, outcome.Outcome, time.Duration)      {}
func (noObserver) Settled(int, store.Unsettled, time.Time, error)  {}
func (noObserver) Extended(int, store.Unsettled, time.Time, error) {}

// noWaker wakes none.
type noWaker struct{}

func (noWaker) Hint(string, store.Lane, time.Duration) bool { return false }
func (noWaker) Freed([]string)                              {}
func (noWaker) WakeWaiting()                                {}

// readerOf returns a reader of changes.
func readerOf(changes func(context.Context, time.Duration) ([]store.StoredChange, error)) *control.ChangeReader {
	log, report := slog.New(slog.DiscardHandler), control.NewHealthReport()
	agrees := func(context.Context, []sqlgen.Formula) error { return nil }
	return control.NewChangeReader(changes, control.NewOverrides(agrees, nil, controltest.Effects{}, report, log), controltest.Effects{}, report, log)
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
