package lease

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// TestLeaseAfterDoneTx: the answers to extensions after DoneTx decide whether the lease may
// still be lost, and when.
func TestLeaseAfterDoneTx(t *testing.T) {
	t.Parallel()
	const length, never = 9 * time.Second, time.Hour
	fine, gone, locked := store.Unsettled{}, store.Unsettled{Lost: []int64{1}}, store.Unsettled{Locked: []int64{1}}
	away := errors.New("the database is away")
	type answer struct {
		left store.Unsettled
		err  error
	}
	for _, c := range []struct {
		name    string
		answers []answer // one each third of a lease, the last one indefinitely
		ends    time.Duration
	}{
		{"committed", []answer{{gone, nil}}, never},
		{"rolled back after more than a lease, and not lost", []answer{{locked, nil}, {locked, nil}, {locked, nil}, {locked, nil}, {fine, nil}}, never},
		{"rolled back, and then lost", []answer{{fine, nil}, {fine, nil}, {gone, nil}}, length},
		{"rolled back, and then the database is away", []answer{{fine, nil}, {fine, away}}, length/3 + length},
		{"the database is away", []answer{{fine, away}}, length},
		{"the transaction goes on for ever", []answer{{locked, nil}}, never},
		{"ended after more than a lease, and gone", []answer{{locked, nil}, {locked, nil}, {locked, nil}, {locked, nil}, {gone, nil}}, 5 * length / 3},
		{"the database is away while the transaction goes on", []answer{{locked, nil}, {fine, away}}, length/3 + length},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &Extender{
				observer: noObserver{},
				length:   length, events: events{slog.New(slog.DiscardHandler)}, Set: NewSet(),
			}
			table, n := &fakeTable{class: dialect.Disconnected}, 0
			e.table = table
			table.extend = func(context.Context, []store.Key) (store.Unsettled, error) {
				a := c.answers[min(n, len(c.answers)-1)]
				n++
				return a.left, a.err
			}
			start := time.Now()
			one := &Lease{Claim: &store.Claim{}, until: start.Add(length)}
			one.Claim.ID = 1
			e.Add(one)
			handler, cancel := context.WithCancelCause(t.Context())
			if !one.Begin(cancel, time.Now()) || !one.Settling() {
				t.Fatal("the handler may not settle")
			}
			one.SettlingEnded()
			ctx, stop := context.WithTimeout(t.Context(), never)
			go e.Work(ctx)
			select {
			case <-handler.Done():
			case <-ctx.Done():
			}
			stop()
			// Leases are checked each third of their length.
			if took := time.Since(start); took < c.ends || took > c.ends+length/3 {
				t.Errorf("%s: the handler's context ended after %v, want %v", c.name, took, c.ends)
			}
			synctest.Wait()
		})
	}
}

// TestRefusedExtensionCostsNoOtherLease: the database refuses to extend the lease of one
// task, for example by a trigger, or hangs because of it. The others are extended.
func TestRefusedExtensionCostsNoOtherLease(t *testing.T) {
	t.Parallel()
	refuse := func(context.Context) error { return errors.New("refused") }
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, answer := range map[string]func(context.Context) error{"refused": refuse, "hangs": hang} {
		for _, bad := range []int64{0, 137, 1499} {
			synctest.Test(t, func(t *testing.T) {
				const length, tasks = 9 * time.Second, 1500
				statements := 0
				e := &Extender{
					observer: noObserver{},
					length:   length, events: events{slog.New(slog.DiscardHandler)}, Set: NewSet(),
					table: &fakeTable{class: dialect.Other, extend: func(ctx context.Context, claims []store.Key) (store.Unsettled, error) {
						statements++
						if slices.ContainsFunc(claims, func(k store.Key) bool { return k.TaskID == bad }) {
							return store.Unsettled{}, answer(ctx)
						}
						return store.Unsettled{}, nil
					}},
				}
				start := time.Now()
				leases := make([]*Lease, tasks)
				for i := range leases {
					leases[i] = &Lease{Claim: &store.Claim{}, until: start.Add(length)}
					leases[i].Claim.ID = int64(i)
				}
				e.Add(leases...)
				ctx, stop := context.WithTimeout(t.Context(), length*99/100) // before any is lost
				defer stop()
				e.Work(ctx)
				for i, l := range leases {
					if extended := l.end().After(start.Add(length)); extended != (int64(i) != bad) {
						t.Errorf("%s: lease %d was extended: %t", name, i, extended)
					}
				}
				if statements > 60 {
					t.Errorf("%s: %d statements", name, statements)
				}
			})
		}
	}
}

// TestLeasesUnderLimitsThatAreOverAreNotExtended: the worker extends only leases of claims under limits with
// the statement that leaves out expired ones.
func TestLeasesUnderLimitsThatAreOverAreNotExtended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const length = 9 * time.Second
		limited := func(want bool) func(context.Context, []store.Key) (store.Unsettled, error) {
			return func(_ context.Context, claims []store.Key) (store.Unsettled, error) {
				for _, k := range claims {
					if got := k.TaskID%2 == 1; got != want {
						t.Errorf("the lease of task %d is extended as if it were limited: %t", k.TaskID, want)
					}
				}
				return store.Unsettled{}, nil
			}
		}
		e := &Extender{
			observer: noObserver{},
			length:   length, events: events{slog.New(slog.DiscardHandler)}, Set: NewSet(),
			table: &fakeTable{extend: limited(false), extendLive: limited(true)},
		}
		start := time.Now()
		leases := make([]*Lease, 4)
		for i := range leases {
			leases[i] = &Lease{Claim: &store.Claim{}, until: start.Add(length)}
			if leases[i].Claim.ID = int64(i); i%2 == 1 {
				leases[i].Claim.Limits = []store.Limit{{Form: store.Running, Most: 1}}
			}
		}
		e.Add(leases...)
		ctx, stop := context.WithTimeout(t.Context(), length/2)
		defer stop()
		e.Work(ctx)
		for i, l := range leases {
			if !l.end().After(start.Add(length)) {
				t.Errorf("the lease of task %d was not extended", i)
			}
		}
	})
}

// TestCancelledTasksCostNoOtherLease: when claims are gone, the worker asks whether their
// tasks were cancelled. The other leases are extended, although the answer does not come and the
// role that reads changes waits for it, too.
func TestCancelledTasksCostNoOtherLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const length, tasks = 6 * time.Second, 1500
		cancelled := func(id int64) bool { return id%store.MaxBatch == 7 }
		log, report := slog.New(slog.DiscardHandler), control.NewHealthReport()
		database := controltest.Database{OnChanges: func(ctx context.Context, _ time.Duration) ([]store.StoredChange, error) {
			<-ctx.Done() // the connection has gone silent
			return nil, ctx.Err()
		}}
		r := control.NewChangeReader(database, control.NewOverrides(database, nil, controltest.Effects{}, report, log), controltest.Effects{}, report, log)
		e := &Extender{
			observer: noObserver{},
			length:   length, events: events{slog.New(slog.DiscardHandler)}, Set: NewSet(), changes: r,
			table: &fakeTable{class: dialect.Disconnected, extend: func(_ context.Context, claims []store.Key) (left store.Unsettled, _ error) {
				for _, k := range claims {
					if cancelled(k.TaskID) {
						left.Lost = append(left.Lost, k.TaskID)
					}
				}
				return left, nil
			}},
		}
		for i := range tasks {
			one := &Lease{Claim: &store.Claim{}, until: time.Now().Add(length)}
			one.Claim.ID = int64(i)
			e.Add(one)
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*length)
		defer stop()
		go r.Work(ctx)
		e.Work(ctx)
		for _, one := range e.list() {
			if lost, _ := one.State(); lost != cancelled(one.Claim.ID) {
				t.Fatalf("the lease of task %d is lost: %t", one.Claim.ID, lost)
			}
		}
		synctest.Wait()
	})
}

// TestLeasesEndThoughNoStatementDoes: the context of a handler ends with its lease while the
// statement that would extend the lease hangs.
func TestLeasesEndThoughNoStatementDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		e := &Extender{
			observer: noObserver{},
			length:   time.Minute, events: events{slog.New(slog.DiscardHandler)}, Set: NewSet(),
			table: &fakeTable{class: dialect.Disconnected, extend: func(context.Context, []store.Key) (store.Unsettled, error) {
				<-released
				return store.Unsettled{}, errors.New("released")
			}},
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { e.Work(ctx); close(done) }()
		time.Sleep(50 * time.Second)                                     // in the middle of everything
		for _, length := range []time.Duration{e.length, e.length / 2} { // the second claim's answer took long
			handler, cancel := context.WithCancelCause(ctx)
			one := &Lease{Claim: &store.Claim{}, until: time.Now().Add(length)}
			one.Begin(cancel, time.Now())
			e.Add(one)
			began := time.Now()
			<-handler.Done()
			if cause := context.Cause(handler); !errors.Is(cause, outcome.ErrLeaseLost) {
				t.Errorf("the cause is %v, want %v", cause, outcome.ErrLeaseLost)
			}
			if took := time.Since(began); took < length || took > length+time.Second {
				t.Errorf("a lease of %v ended after %v", length, took)
			}
		}
		close(released)
		stop()
		<-done
	})
}

// TestLeasesAreExtendedSoonAfterAFailure: an outage ends within a lease, and the first extension after it
// takes a while. The lease is kept.
func TestLeasesAreExtendedSoonAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const length = time.Minute
		back := time.Now().Add(length * 7 / 10)
		e := &Extender{
			observer: noObserver{},
			length:   length, events: events{slog.New(slog.DiscardHandler)}, Set: NewSet(),
			table: &fakeTable{class: dialect.Disconnected, extend: func(ctx context.Context, _ []store.Key) (store.Unsettled, error) {
				if time.Now().Before(back) {
					return store.Unsettled{}, errors.New("no connection")
				}
				return store.Unsettled{}, retry.Pause(ctx, length/5)
			}},
		}
		one := &Lease{Claim: &store.Claim{}, until: time.Now().Add(length)}
		e.Add(one)
		ctx, stop := context.WithTimeout(t.Context(), 3*length)
		defer stop()
		e.Work(ctx)
		if lost, _ := one.State(); lost {
			t.Error("the lease is lost")
		}
	})
}
