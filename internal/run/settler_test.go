package run

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

// TestBadSettlementsDelayGoodOnesLittle: a steady stream of runs whose settlements are
// refused, and one whose settlement hangs, delay the others by seconds.
func TestBadSettlementsDelayGoodOnesLittle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		bad   func(id int64) bool
		hangs bool
		most  time.Duration
	}{
		{"refused", func(id int64) bool { return id%2 == 0 }, false, 2 * time.Second},
		{"hangs", func(id int64) bool { return id == 0 }, true, 2*retry.SettleTimeout + retry.SlowSettleTimeout + time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const n = 4000
				s, runs := refusingSettler(n, dialect.UniqueViolation, nil, nil)
				settle := func(ctx context.Context, batch []*store.Settlement) (store.Unsettled, error) {
					time.Sleep(2 * time.Millisecond)
					if !slices.ContainsFunc(batch, func(e *store.Settlement) bool { return c.bad(e.TaskID) }) {
						return store.Unsettled{}, nil
					}
					if c.hangs {
						<-ctx.Done()
						return store.Unsettled{}, ctx.Err()
					}
					return store.Unsettled{}, errors.New("no")
				}
				s.Table, s.second = &fakeSettles{settle: settle, class: dialect.UniqueViolation}, nil
				go s.Work(t.Context())
				sent := map[*Run]time.Time{}
				var worst time.Duration
				for _, r := range runs {
					s.In <- r
					if !c.bad(r.Claim.ID) {
						sent[r] = time.Now()
					}
					time.Sleep(20 * time.Millisecond)
					for r, at := range sent {
						if !s.Leases.Has(&r.Lease) {
							worst = max(worst, time.Since(at))
							delete(sent, r)
						}
					}
				}
				if worst > c.most || len(sent) > 1000 {
					t.Errorf("a settlement waited for %v, want %v at most; %d still wait", worst, c.most, len(sent))
				}
				close(s.In)
				<-s.Done
			})
		})
	}
}

// endedFlows records what it is told.
type endedFlows struct{ members, gone []int64 }

func (f *endedFlows) Ended(members, gone []int64) { f.members, f.gone = members, gone }

// TestAMemberIsNotedAfterALostAnswer: a settle that found nothing to settle may follow one that
// took effect, and whose answer was lost.
func TestAMemberIsNotedAfterALostAnswer(t *testing.T) {
	t.Parallel()
	run := func(id int64, unsure bool) *Run {
		r := &Run{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{}}, unsure: unsure}
		r.Claim.ID, r.end.State, r.end.Member = id, "done", true
		return r
	}
	told := &endedFlows{}
	s := &Settler{SettlerConfig: SettlerConfig{Flows: told}}
	s.tellFlows([]*Run{run(1, false), run(2, true), run(3, false)}, map[int64]bool{1: true, 2: true})
	if !slices.Equal(told.members, []int64{2, 3}) {
		t.Errorf("the members %v have ended, want 2 and 3", told.members)
	}
}

func TestBatchesHoldOneClaimPerTask(t *testing.T) {
	t.Parallel()
	var rest []*Run
	for _, id := range []int64{1, 2, 1, 3, 1, 1} {
		rest = append(rest, &Run{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{Claimed: statements.Claimed{ID: id, Fence: int64(len(rest))}}}})
	}
	last := map[int64]int64{}
	for _, want := range []int{3, 1, 1, 1} {
		batch, again := distinct(rest)
		if rest = again; len(batch) != want {
			t.Fatalf("a batch holds %d claims, want %d", len(batch), want)
		}
		for _, r := range batch {
			if r.Claim.Fence < last[r.Claim.ID] {
				t.Errorf("task %d: claim %d is settled after claim %d", r.Claim.ID, r.Claim.Fence, last[r.Claim.ID])
			}
			last[r.Claim.ID] = r.Claim.Fence
		}
	}
	if len(rest) > 0 {
		t.Errorf("%d claims are left", len(rest))
	}
}

// claimed returns a settler without goroutines, and runs of n tasks that are claimed and whose
// handlers have succeeded.
func claimed(t *testing.T, engine string, n int) (st *store.Store, s *Settler, runs []*Run) {
	t.Helper()
	db := testdb.Open(t, engine)
	server, err := dialect.Probe(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	tables := dialect.Tables{Prefix: "falldue_"}
	m, err := migrations.New(db.DB, server, tables)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	st = store.New(db, server, store.Options{Tables: tables})
	entries := make([]store.Entry, n)
	for i := range entries {
		entries[i] = store.Entry{Queue: "default", Kind: "settled", Payload: "1"}
	}
	if _, err := st.Enqueue(t.Context(), nil, entries); err != nil {
		t.Fatal(err)
	}
	leases := lease.NewExtender("me", time.Minute, lease.NewSet(), st, nil, noObserver{}, slog.New(slog.DiscardHandler))
	s = NewSettler(SettlerConfig{
		Table: st, SingleWriter: server.Caps.SingleWriter,
		WorkerID: "me", LeaseLength: time.Minute, Leases: leases, Pollers: noWaker{}, Ended: new(EndedRuns), Log: slog.New(slog.DiscardHandler), Observer: noObserver{},
	})
	for len(runs) < n {
		got, err := st.Claim(t.Context(), store.ClaimParams{
			Queue: "default", Worker: "me", Lease: time.Minute, Limit: min(n-len(runs), store.MaxBatch),
			Sources: []store.Source{{Lane: store.Lane{State: statements.StateOpen, Kind: "settled"}, Delay: control.Compile(backoff.Zizq()).Delay, Running: statements.StateOpen}},
		})
		if err != nil || len(got) == 0 {
			t.Fatalf("claimed %d tasks (error %v)", len(got), err)
		}
		for _, c := range got {
			r := &Run{Env: &Env{Queue: "default"}, handler: &Handler{}, ClaimResult: outcome.ClaimResult{Claim: c, WorkerID: "me"}, Lease: lease.New(c, "default", time.Now().Add(time.Minute))}
			r.end = r.Conclude(nil, 0)
			runs = append(runs, r)
		}
	}
	return st, s, runs
}

// wait waits for a signal.
func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testdb.Patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

// freedLimits records which limits the pollers are told of.
type freedLimits struct {
	noWaker
	names *[]string
}

func (f freedLimits) Freed(limits []string) { *f.names = append(*f.names, limits...) }

// TestEndsFreeNoRates: the end of a run frees its permits of limits of concurrency. The permits of rates become free
// with time, so that a claim after the end would be in vain.
func TestEndsFreeNoRates(t *testing.T) {
	t.Parallel()
	_, s, runs := claimed(t, testdb.SQLite, 1)
	var freed []string
	s.Pollers = freedLimits{names: &freed}
	for name, form := range map[string]store.LimitForm{"most": store.Running, "window": store.Window, "bucket": store.Bucket, "order": store.Sequence} {
		runs[0].Claim.Limits = append(runs[0].Claim.Limits, store.Limit{Name: name, Form: form})
	}
	s.finish(runs, nil, waitForLocks)
	if slices.Sort(freed); !slices.Equal(freed, []string{"most", "order"}) {
		t.Errorf("limits %q were freed, want most and order", freed)
	}
}

// endedClaims is a table that records the tasks of ended claims.
type endedClaims struct {
	settleTable
	ids *[]int64
}

func (e endedClaims) Ended(claims []*store.Claim) {
	for _, c := range claims {
		*e.ids = append(*e.ids, c.ID)
	}
}

// TestOnlySettledClaimsHaveEnded: the table learns which claims with limits were settled. A lost claim may belong to
// another worker, and a task without limits has no permits.
func TestOnlySettledClaimsHaveEnded(t *testing.T) {
	t.Parallel()
	_, s, runs := claimed(t, testdb.SQLite, 3)
	var ids []int64
	s.Table = endedClaims{s.Table, &ids}
	settled, lost := runs[0].Claim, runs[1].Claim
	for _, c := range []*store.Claim{settled, lost} {
		c.Limits = []store.Limit{{Name: "most", Form: store.Running}}
	}
	s.finish(runs, map[int64]bool{lost.ID: true}, waitForLocks)
	if !slices.Equal(ids, []int64{settled.ID}) {
		t.Errorf("the claims of tasks %v have ended, want only %d; %d was lost", ids, settled.ID, lost.ID)
	}
}

// TestSecondSettlerHelps: the settler signals the second one when many runs wait in addition to
// its batch, and the second one settles them.
func TestSecondSettlerHelps(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		st, s, runs := claimed(t, engine, store.MaxBatch+minBatch)
		if s.second == nil {
			t.Skip("it has one writer at a time")
		}
		for _, r := range runs {
			s.In <- r
		}
		var ended sync.WaitGroup
		ended.Go(func() { s.writeLoop(t.Context(), s.In, nil) })
		wait(t, s.assistWanted, "the settler to signal the second one")
		close(s.In)
		ended.Wait()
		if n, err := st.Counts(t.Context()); err != nil || len(n) > 0 {
			t.Errorf("left are %v (error %v)", n, err)
		}

		st, s, runs = claimed(t, engine, 3)
		for _, r := range runs {
			s.second.In <- r
		}
		s.In = make(chan *Run) // the first one gets none of them
		retry.Signal(s.assistWanted)
		close(s.In)
		s.Work(t.Context())
		if n, err := st.Counts(t.Context()); err != nil || len(n) > 0 {
			t.Errorf("the second settler left %v (error %v)", n, err)
		}
	})
}
