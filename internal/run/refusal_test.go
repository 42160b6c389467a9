package run

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// refusingSettler returns a settler whose settles fail with an error of a class if
// refuses returns true, and runs of n tasks for it. The settler calls tried with the size of
// each batch.
func refusingSettler(n int, class dialect.Class, refuses func([]*store.Settlement) bool, tried func(n int, settled bool)) (*Settler, []*Run) {
	leases := newLeases()
	settle := func(_ context.Context, batch []*store.Settlement) (store.Unsettled, error) {
		bad := refuses(batch)
		tried(len(batch), !bad)
		if bad {
			return store.Unsettled{}, errors.New("no")
		}
		return store.Unsettled{}, nil
	}
	s := NewSettler(SettlerConfig{
		Observer:    noObserver{},
		Table:       &fakeSettles{settle, class},
		LeaseLength: time.Minute, ShutdownTimeout: time.Second, Leases: leases, Pollers: noWaker{}, Ended: &EndedRuns{}, Log: slog.New(slog.DiscardHandler),
	})
	runs := make([]*Run, n)
	for i := range runs {
		c := new(store.Claim)
		c.ID = int64(i)
		runs[i] = &Run{Env: &Env{}, ClaimResult: outcome.ClaimResult{Claim: c}, Lease: lease.New(c, "", time.Now().Add(10*time.Minute))}
		runs[i].end.TaskID = c.ID
	}
	leases.Add(leasesOf(runs)...)
	return s, runs
}

var classes = []dialect.Class{
	dialect.Other, dialect.UniqueViolation, dialect.Contention, dialect.Unavailable, dialect.Disconnected,
	dialect.UndefinedTable, dialect.PreparedStatementMissing,
}

// TestOnlyRefusedSettlementsAreParked: whatever the class of the error, the settler finds
// the settlements that the database refuses with few statements, and settles the others.
func TestOnlyRefusedSettlementsAreParked(t *testing.T) {
	t.Parallel()
	for _, class := range classes {
		synctest.Test(t, func(t *testing.T) {
			tries, settled := 0, 0
			culprits := func(e *store.Settlement) bool { return e.TaskID == 77 || e.TaskID == 333 }
			s, runs := refusingSettler(store.MaxBatch, class,
				func(batch []*store.Settlement) bool { return slices.ContainsFunc(batch, culprits) },
				func(n int, ok bool) {
					tries++
					if ok {
						settled += n
					}
				})
			s.writeAll(t.Context(), runs, waitForLocks)
			if len(s.parked) != 2 || settled != len(runs)-2 || s.Leases.Count() != 2 || tries > 60 {
				t.Errorf("%v: parked %d and settled %d by %d statements; %d leases are left", class, len(s.parked), settled, tries, s.Leases.Count())
			}
		})
	}
}

// TestADatabaseThatRefusesAllIsNotFlooded: while the database settles nothing, the settler
// sends few statements, and settles all runs when it does again.
func TestADatabaseThatRefusesAllIsNotFlooded(t *testing.T) {
	t.Parallel()
	for _, class := range classes {
		if retry.KindOf(class, false) == retry.Refused {
			continue // each of the tasks is refused
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var tries atomic.Int64
			var back atomic.Bool
			s, runs := refusingSettler(store.MaxBatch, class, func([]*store.Settlement) bool { return !back.Load() }, func(int, bool) { tries.Add(1) })
			for _, r := range runs {
				s.In <- r
			}
			close(s.In)
			s.ShutdownTimeout = time.Hour
			go s.Work(ctx)
			time.Sleep(50 * time.Second)
			if n := tries.Load(); n > 250 {
				t.Errorf("%v: %d statements in 50 seconds", class, n)
			}
			back.Store(true)
			time.Sleep(10 * time.Second)
			if n := s.Leases.Count(); n > 0 {
				t.Errorf("%v: %d runs are not settled", class, n)
			}
		})
	}
}
