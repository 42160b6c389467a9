package claim

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// TestHotKeysAreNotHammered: for ten seconds other workers have all permits of three keys. The
// poller claims some hundred times.
func TestHotKeysAreNotHammered(t *testing.T) {
	t.Parallel()
	const keys, most = 3, 400
	for name, rest := range map[string]store.Rest{"outrun": {Why: store.Outrun}, "saturated": {Why: store.Saturated}, "rate": {Why: store.Saturated, Wait: 100 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			handlers := map[string]*run.Handler{"k": {Policy: control.Compile(backoff.Zizq())}}
			handlers["k"].Limits = []store.Limit{{Name: "kind k running of ", PerKey: true, Form: store.Running, Most: 2}}
			claims := 0
			p := newTestPoller(PollerConfig{
				Queue: "default", Budget: run.NewBudget(10, 0), Log: slog.New(slog.DiscardHandler),
				Policies: policiesOf(run.PoliciesOf(handlers)), Handlers: handlers, Limiter: NewLimiter(nil, handlers),
				Table: fakeTable{limited: func(p store.ClaimParams) (store.Limited, error) {
					if claims++; claims > most {
						cancel()
					}
					rests := slices.Repeat([]store.Rest{rest}, len(p.Sources))
					for i, from := range p.Sources {
						rests[i].Name = from.Limits[0].Name
					}
					return store.Limited{Rests: rests}, nil
				}},
				Dispatcher: noDispatcher{}, PollInterval: time.Second, AscendingIDs: true,
			}, fakeFinder{})
			for i := range keys {
				p.lanes.Hint(store.Lane{State: "open", Kind: "k", Key: strconv.Itoa(i)}, time.Now())
			}
			p.search.at = time.Now().Add(time.Hour)
			p.work(ctx)
			if claims < 10 || claims > most {
				t.Errorf("%s: %d claims in ten seconds, want 10 to %d", name, claims, most)
			}
			t.Logf("%s: %d claims", name, claims)
		})
	}
}

// TestClaimsWaitForTasksOfThisProcess: a claim takes the last permit of a limit that several keys share. No claim tries
// these keys again until the task ends and frees the permit.
func TestClaimsWaitForTasksOfThisProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ends = 79 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		limit := store.Limit{Name: "kind k running", Form: store.Running, Most: 1}
		handlers := map[string]*run.Handler{"k": {Policy: control.Compile(backoff.Zizq()), Limits: []store.Limit{limit}}}
		start := time.Now()
		var times []time.Duration // of the claims
		p := newTestPoller(PollerConfig{
			Queue: "default", Budget: run.NewBudget(10, 0), Policies: policiesOf(run.PoliciesOf(handlers)), Handlers: handlers, Limiter: NewLimiter(nil, handlers),
			Table: fakeTable{limited: func(p store.ClaimParams) (result store.Limited, err error) {
				if times = append(times, time.Since(start)); len(times) > 1 {
					cancel()
				}
				c := &store.Claim{From: p.Sources[0].Lane, Limits: p.Sources[0].Limits}
				c.Place = 1
				result.Claims = []*store.Claim{c}
				result.Rests = slices.Repeat([]store.Rest{{Why: store.Saturated, Name: limit.Name}}, len(p.Sources))
				return result, nil
			}},
			Dispatcher: noDispatcher{}, PollInterval: time.Second, AscendingIDs: true,
		}, fakeFinder{})
		for i := range 3 {
			p.lanes.Hint(store.Lane{State: "open", Kind: "k", Key: strconv.Itoa(i)}, time.Now())
		}
		p.search.at = time.Now().Add(time.Hour)
		time.AfterFunc(ends, func() { p.Freed([]string{limit.Name}) })
		p.work(ctx)
		if want := []time.Duration{0, ends}; !slices.Equal(times, want) {
			t.Errorf("claims after %v, want %v", times, want)
		}
	})
}

// TestClaimsLeaveExpiredTasksToTheirCancel: under a rate, a claim that finds expired tasks leaves them, and no claim tries
// their lane again until they are cancelled. If nothing can be cancelled twice in a row, a claim takes them.
func TestClaimsLeaveExpiredTasksToTheirCancel(t *testing.T) {
	t.Parallel()
	const takes = 79 * time.Millisecond // to cancel a batch, or to fail
	for name, c := range map[string]struct {
		cancelled int
		leaves    []bool // whether the claims leave expired tasks
	}{"they are cancelled": {cancelled: 3, leaves: []bool{true, true, true, true}}, "nothing is cancelled": {leaves: []bool{true, true, false, true}}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			handlers := map[string]*run.Handler{"k": {Policy: control.Compile(backoff.Zizq())}}
			handlers["k"].Limits = []store.Limit{{Name: "kind k rate", Form: store.Window, Most: 1, Per: time.Hour}}
			start := time.Now()
			var leaves []bool
			var times, want []time.Duration
			p := newTestPoller(PollerConfig{
				Queue: "default", Budget: run.NewBudget(10, 0), Policies: policiesOf(run.PoliciesOf(handlers)), Handlers: handlers, Limiter: NewLimiter(nil, handlers),
				Expired: countsExpired{},
				Table: fakeTable{
					limited: func(p store.ClaimParams) (result store.Limited, err error) {
						leave := p.Sources[0].LeaveExpired
						times, leaves = append(times, time.Since(start)), append(leaves, leave)
						if len(leaves) == len(c.leaves) {
							cancel()
						}
						result.Rests = []store.Rest{{Why: store.More}}
						if leave {
							result.Rests[0].Why = store.LeftExpired
						}
						return result, nil
					},
					expireDated: func() (store.Expired, error) {
						<-time.After(takes)
						return store.Expired{IDs: make([]int64, c.cancelled), Refused: c.cancelled == 0}, nil
					},
				},
				Dispatcher: noDispatcher{}, PollInterval: time.Second, AscendingIDs: true,
			}, fakeFinder{})
			p.lanes.Hint(store.Lane{State: "open", Kind: "k"}, time.Now())
			p.search.at = time.Now().Add(time.Hour)
			var expiring sync.WaitGroup
			expiring.Go(func() { p.ExpireLate(ctx) })
			p.work(ctx)
			expiring.Wait()
			at := time.Duration(0)
			for _, leave := range c.leaves {
				want = append(want, at)
				if leave {
					at += takes
				}
			}
			if !slices.Equal(leaves, c.leaves) || !slices.Equal(times, want) {
				t.Errorf("%s: claims leave expired tasks %v after %v; want %v after %v", name, leaves, times, c.leaves, want)
			}
		})
	}
}

// countsExpired is told of expired tasks, and does nothing.
type countsExpired struct{}

func (countsExpired) Expired(string, string, int) {}
func (countsExpired) Ended(_, _ []int64)          {}
