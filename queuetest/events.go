package queuetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

var eventCases = []conformanceCase{
	inCallersTx("each run has an event when it begins and one when its end is settled, for hooks and subscriptions", func(t *testing.T, f *fixture) {
		var hooked endings
		var sweeps, claims, claimed, settled atomic.Int64
		q := f.queue(t, falldue.Config{Concurrency: 20, Hooks: falldue.Hooks{
			Event: func(e falldue.Event) { hooked.add(e.ID, ending{e.Attempt, e.Outcome}) },
			Sweep: func(s falldue.StatementStats) {
				sweeps.Add(1)
				if s.Queue != falldue.DefaultQueue || s.Took <= 0 || s.Err != nil {
					t.Errorf("a sweep is %+v", s)
				}
			},
			Claim: func(s falldue.StatementStats) {
				claims.Add(1)
				claimed.Add(int64(s.Tasks))
				if s.Queue != falldue.DefaultQueue || s.Wanted < s.Tasks || s.Took <= 0 || s.Recovered != 0 || s.Err != nil {
					t.Errorf("a claim is %+v", s)
				}
			},
			Settle: func(s falldue.StatementStats) {
				settled.Add(int64(s.Tasks - s.Lost - s.Locked))
				if s.Err != nil {
					t.Errorf("a settle is %+v", s)
				}
			},
		}})
		all := q.Subscribe(falldue.SubscribeOptions{Kinds: []string{"ending"}})
		dead := q.Subscribe(falldue.SubscribeOptions{Outcomes: []falldue.Outcome{falldue.OutcomeDead, falldue.OutcomeDiscarded}})
		other := q.Subscribe(falldue.SubscribeOptions{Kinds: []string{"other"}})
		started := make(chan int64, 1)
		handleOutcomes(q, f, started)
		stop := startWorker(t, q)
		finished := map[string]int64{}
		runOutcomes(t, q, started, func(args string, id int64) { finished[args] = id })
		stop()
		for _, s := range []*falldue.Subscription{all, dead, other} {
			s.Close()
			s.Close()
			if n := s.Dropped(); n != 0 {
				t.Errorf("%d events were dropped", n)
			}
		}
		var subscribed endings
		runs := 0
		for e := range all.Events() {
			subscribed.add(e.ID, ending{e.Attempt, e.Outcome})
			if e.Outcome == falldue.OutcomeNone {
				runs++
			}
			switch e.Outcome {
			case falldue.OutcomeRetried, falldue.OutcomeDead, falldue.OutcomeDiscarded, falldue.OutcomeRetriedAfter:
				var p *falldue.PanicError
				if !errors.Is(e.Err, errFlaky) && !errors.As(e.Err, &p) {
					t.Errorf("the error of an event is %v", e.Err)
				}
			case falldue.OutcomeNone, falldue.OutcomeDone:
				if e.Err != nil {
					t.Errorf("the error of an event is %v", e.Err)
				}
			default:
			}
			if e.Worker == "" || e.StartedAt.IsZero() || e.Outcome != falldue.OutcomeNone && e.Took <= 0 {
				t.Errorf("an event is %+v", e)
			}
		}
		for args, id := range finished {
			var want []ending
			for _, run := range outcomes[args] {
				want = append(want, ending{run.attempt, falldue.OutcomeNone}, run)
			}
			if got := subscribed.of(id); !slices.Equal(beginsFirst(got), beginsFirst(want)) {
				t.Errorf("%s: the events are %v, want %v", args, got, want)
			}
			if got := hooked.of(id); !slices.Equal(beginsFirst(got), beginsFirst(want)) {
				t.Errorf("%s: the hook has had %v, want %v", args, got, want)
			}
		}
		n := 0
		for range dead.Events() {
			n++
		}
		if n != 2 {
			t.Errorf("%d events of dead tasks, want 2", n)
		}
		if e, ok := <-other.Events(); ok {
			t.Errorf("a subscription to another kind has %+v", e)
		}
		// The cancelled task was not settled.
		if c := claimed.Load(); c != int64(runs) || claims.Load() < 3 || sweeps.Load() == 0 || settled.Load() != c-1 {
			t.Errorf("hooks of %d claims count %d tasks, and %d that were settled; want %d", claims.Load(), c, settled.Load(), runs)
		}
	}),
	{"a subscription without a reader drops events and counts them, and a hook that panics is logged", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour, Hooks: falldue.Hooks{Event: func(falldue.Event) { panic("in a hook") }}})
		k := falldue.NewKind[noteArgs]("unread", falldue.KindConfig{})
		falldue.Handle(q, k, func(context.Context, falldue.Task[noteArgs]) error { return nil })
		s := q.Subscribe(falldue.SubscribeOptions{Buffer: 2, Outcomes: []falldue.Outcome{falldue.OutcomeDone}})
		const tasks = 20
		receipts, err := k.EnqueueMany(t.Context(), q, make([]noteArgs, tasks))
		if err != nil {
			t.Fatal(err)
		}
		stop := startWorker(t, q)
		for _, r := range receipts {
			waitForState(t, q, r.ID, falldue.StateDone)
		}
		stop()
		if n := s.Dropped(); n != tasks-2 || len(s.Events()) != 2 {
			t.Errorf("%d events were dropped and %d are there, want %d and 2", n, len(s.Events()), tasks-2)
		}
		s.Close()
	}},
	{"tasks that the worker gives back and leases that it loses have events", func(t *testing.T, f *fixture) {
		db := f.open(t)
		extended := make(chan falldue.StatementStats, 1000)
		const lease = 2 * shortLease // a busy machine may leave one extension out, and the next one still fails
		q := f.queueOn(t, db, falldue.Config{Lease: lease, Concurrency: 1, Hooks: falldue.Hooks{Extend: func(s falldue.StatementStats) { extended <- s }}})
		k := falldue.NewKind[noteArgs]("losing", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		started, seen := make(chan struct{}, 1), make(chan falldue.Outcome, 1)
		falldue.Handle(q, k, func(ctx context.Context, _ falldue.Task[noteArgs]) error {
			started <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}, func(next falldue.HandlerFunc) falldue.HandlerFunc {
			return func(ctx context.Context, run *falldue.Run) error {
				err := next(ctx, run)
				if !errors.Is(err, falldue.ErrLeaseLost) {
					t.Errorf("the handler's error is %v", err)
				}
				seen <- run.Outcome(err)
				return err
			}
		})
		s := q.Subscribe(falldue.SubscribeOptions{Outcomes: []falldue.Outcome{falldue.OutcomeLost}})
		defer s.Close()
		enqueue(t, q, k, noteArgs{})
		stop := startWorker(t, q)
		receive(t, started, "the handler")
		if s := receive(t, extended, "an extension"); s.Tasks != 1 || s.Lost != 0 || s.Err != nil || s.Took <= 0 {
			t.Errorf("the extension is %+v", s)
		}
		_ = db.Close() // the lease can no longer be extended
		if o := receive(t, seen, "the end of the handler"); o != falldue.OutcomeLost {
			t.Errorf("middleware sees the outcome %q", o)
		}
		if e := receive(t, s.Events(), "the event"); e.Outcome != falldue.OutcomeLost || e.Kind != "losing" {
			t.Errorf("the event is %+v", e)
		}
		stop()
		for failed := false; !failed; {
			failed = receive(t, extended, "an extension that fails").Err != nil
		}

		recovered := make(chan falldue.StatementStats, 1)
		again := f.queue(t, falldue.Config{ShutdownTimeout: -1, Lease: time.Hour, Hooks: falldue.Hooks{Claim: func(s falldue.StatementStats) {
			if s.Recovered > 0 {
				recovered <- s
			}
		}}})
		falldue.Handle(again, k, func(ctx context.Context, _ falldue.Task[noteArgs]) error {
			started <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		s = again.Subscribe(falldue.SubscribeOptions{Outcomes: []falldue.Outcome{falldue.OutcomeReleased}})
		defer s.Close()
		stop = startWorker(t, again)
		receive(t, started, "the handler")
		if s := receive(t, recovered, "the claim of the task that was lost"); s.Recovered != 1 || s.Tasks != 1 {
			t.Errorf("the claim is %+v", s)
		}
		stop()
		if e := receive(t, s.Events(), "the event"); !errors.Is(e.Err, falldue.ErrStopping) || !strings.HasPrefix(e.Kind, "losing") {
			t.Errorf("the event is %+v", e)
		}
	}},
}
