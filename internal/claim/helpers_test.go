package claim

import (
	"context"
	"log/slog"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// noObserver is told of everything, and does nothing.
type noObserver struct{}

func (noObserver) Swept(string, int, time.Time, error)                   {}
func (noObserver) Claimed(string, int, []*store.Claim, time.Time, error) {}

// unknownDelays knows the delay of no lane.
func unknownDelays(store.Lane) (time.Duration, bool) { return 0, false }

// noLimits reports that the tasks of no lane have limits.
func noLimits(store.Lane) bool { return false }

// agrees is a database that computes delays as Go does.
func agrees(context.Context, []sqlgen.Formula) error { return nil }

// readerOf returns a reader of changes.
func readerOf(changes func(context.Context, time.Duration) ([]store.StoredChange, error)) *control.ChangeReader {
	log, report := slog.New(slog.DiscardHandler), control.NewHealthReport()
	overrides := control.NewOverrides(agrees, nil, controltest.Effects{}, report, log)
	return control.NewChangeReader(changes, overrides, controltest.Effects{}, report, log)
}

var classes = []dialect.Class{
	dialect.Other, dialect.UniqueViolation, dialect.Contention, dialect.Unavailable, dialect.Disconnected,
	dialect.UndefinedTable, dialect.PreparedStatementMissing,
}
