package claim

import (
	"context"
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

// TestClaimsUnderLimitsAreParallel: after a large claim from many keys two claims are under way, each from other keys. Tasks
// without limits do not wait for a claim that hangs. Under a limit that the keys share, there is one claim at a time.
func TestClaimsUnderLimitsAreParallel(t *testing.T) {
	t.Parallel()
	for _, perKey := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			limit := store.Limit{Name: "kind k running of ", PerKey: perKey, Form: store.Running, Most: 1 << 20}
			handlers := map[string]*run.Handler{"k": {Policy: control.Compile(backoff.Zizq()), Limits: []store.Limit{limit}}, "plain": {Policy: control.Compile(backoff.Zizq())}}
			var mu sync.Mutex
			var sources [][]store.Source // of the claims under limits
			var plain []time.Time        // of claims without limits
			const byAssist, byLoop = 2, 3
			began, answers := make(chan bool), map[int]chan bool{byAssist: make(chan bool), byLoop: make(chan bool)}
			ctx, cancel := context.WithCancel(t.Context())
			p := newTestPoller(PollerConfig{
				Queue: "default", Budget: run.NewBudget(1<<20, 0), Policies: policiesOf(run.PoliciesOf(handlers)), Handlers: handlers, Limiter: NewLimiter(nil, handlers),
				Table: fakeTable{
					limited: func(p store.ClaimParams) (result store.Limited, err error) {
						mu.Lock()
						sources = append(sources, p.Sources)
						n := len(sources)
						mu.Unlock()
						if n == byAssist && perKey {
							close(began)
						}
						if n > 1 {
							<-answers[n]
						}
						for i, from := range p.Sources {
							c := &store.Claim{From: from.Lane, Limits: from.Limits}
							c.Place = i + 1
							result.Claims = append(result.Claims, c)
							result.Rests = append(result.Rests, store.Rest{Why: store.Saturated, Name: from.Limits[0].Name, Wait: time.Hour})
						}
						return result, nil
					},
					claim: func(store.ClaimParams) ([]*store.Claim, error) {
						mu.Lock()
						defer mu.Unlock()
						plain = append(plain, time.Now())
						return nil, nil
					},
				},
				Dispatcher: dispatchFunc(func() {
					if perKey {
						<-began // so that the claim of Assist is the second one
					}
				}), PollInterval: time.Minute, AscendingIDs: true, ParallelClaims: true,
			}, fakeFinder{})
			for i := range 3 * maxLimitedSources {
				p.lanes.Hint(store.Lane{State: "open", Kind: "k", Key: strconv.Itoa(i)}, time.Now())
			}
			p.search.at = time.Now().Add(time.Hour)
			var loops sync.WaitGroup
			loops.Go(func() { p.Assist(ctx) })
			loops.Go(func() { p.Loop(ctx) })
			synctest.Wait()
			want := 3
			if !perKey {
				want = 2
			}
			if len(sources) != want {
				t.Fatalf("per key %v: %d claims have begun, want %d", perKey, len(sources), want)
			}
			var lanes []string
			for _, list := range sources {
				for _, from := range list {
					lanes = append(lanes, from.Key)
				}
			}
			slices.Sort(lanes)
			if n := len(slices.Compact(lanes)); n != want*maxLimitedSources {
				t.Errorf("the claims are from %d keys, want %d", n, want*maxLimitedSources)
			}
			if perKey {
				start := time.Now()
				p.lanes.Hint(store.Lane{State: "open", Kind: "plain"}, start)
				close(answers[byLoop]) // the other claim hangs
				time.Sleep(time.Second)
				mu.Lock()
				if len(plain) == 0 || plain[0].Sub(start) > 2*minPause {
					t.Errorf("claims without limits at %v, want one within %v of %v", plain, 2*minPause, start)
				}
				mu.Unlock()
			}
			close(answers[byAssist])
			if !perKey {
				close(answers[byLoop])
			}
			cancel()
			loops.Wait()
		})
	}
}
