package falldue

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// TestClaimsInVainBackOff: a limit holds back a lane for longer with each claim that gets
// nothing, from 4 up to 160 milliseconds after other claims took the permits.
func TestClaimsInVainBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		known, at := newLaneTracker(), store.Lane{State: "open", Kind: "k", Key: "hot"}
		known.hint(at, time.Now())
		// hold holds the lane back, and returns for how long.
		hold := func(wait time.Duration) time.Duration {
			t.Helper()
			start := time.Now()
			known.hold(at, "limit", wait, maxSlotWait)
			if due := known.due(start, 1); len(due) > 0 && wait > 0 {
				t.Errorf("the lane is due while the limit holds it back")
			}
			retry, ok := known.next()
			if !ok {
				t.Fatal("the lane is forgotten")
			}
			time.Sleep(time.Until(retry)) // by the clock of the bubble
			if due := known.due(time.Now(), 1); len(due) != 1 {
				t.Errorf("the lane is not due again after %v", time.Since(start))
			}
			return time.Since(start)
		}
		for range 2 {
			for _, ms := range []time.Duration{4, 8, 16, 32, 64, 128, 160, 160} {
				known.beginLimited()
				most := ms * time.Millisecond
				if got := hold(0); got < most/2 || got >= most {
					t.Errorf("the lane is held back for %v, want %v to %v", got, most/2, most)
				}
			}
			known.admitted(at) // and so the next claim in vain is the first one
		}
		if got := hold(3 * time.Second); got != 3*time.Second {
			t.Errorf("under a rate that admits a task in 3s the lane is held back for %v", got)
		}
		// A permit that this process frees makes the lane due, also while the claim is under way.
		known.hold(at, "limit", time.Hour, maxSlotWait)
		known.freed([]string{"another limit"})
		if due := known.due(time.Now(), 1); len(due) != 0 {
			t.Error("the permit of another limit makes the lane due")
		}
		known.freed([]string{"limit"})
		if due := known.due(time.Now(), 1); len(due) != 1 {
			t.Error("a permit was freed, and the lane is not due")
		}
		known.beginLimited()
		known.freed([]string{"limit"})
		if got := hold(0); got != 0 {
			t.Errorf("a permit was freed after the claim began, and the lane is held back for %v", got)
		}
	})
}

// TestHotKeysAreNotHammered: for ten seconds other workers have all permits of three keys. The
// poller claims some hundred times.
func TestHotKeysAreNotHammered(t *testing.T) {
	t.Parallel()
	const keys, most = 3, 400
	for name, rest := range map[string]store.Rest{"outrun": {Hold: store.Outrun}, "saturated": {Hold: store.Saturated}, "rate": {Hold: store.Saturated, Wait: 100 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			handlers := map[string]*handler{"k": {rule: newRule(backoff.Zizq())}}
			handlers["k"].limits = []store.Limit{{Name: "kind k running of ", PerKey: true, Form: store.Running, Most: 2}}
			claims := 0
			p := newPoller(pollerConfig{
				queue: "default", budget: newBudget(10, 0), events: events{slog.New(slog.DiscardHandler)}, behind: func() bool { return false },
				gates: gates{handledKinds(handlers)}, handlers: handlers, limiter: newLimiter(nil, handlers),
				claimUnderLimits: func(_ context.Context, p store.ClaimParams) (store.Limited, error) {
					if claims++; claims > most {
						cancel()
					}
					rests := slices.Repeat([]store.Rest{rest}, len(p.Sources))
					for i, from := range p.Sources {
						rests[i].Name = from.Limits[0].Name
					}
					return store.Limited{Rests: rests}, nil
				},
				dispatch: func([]*store.Claim, []*rule, time.Time) {},
			}, &sweeper{every: time.Second, heads: func(context.Context) ([]store.Head, error) { return nil, nil }})
			for i := range keys {
				p.lanes.hint(store.Lane{State: "open", Kind: "k", Key: strconv.Itoa(i)}, time.Now())
			}
			p.sweeper.at = time.Now().Add(time.Hour)
			p.loop(ctx)
			if claims < 10 || claims > most {
				t.Errorf("%s: %d claims in ten seconds, want 10 to %d", name, claims, most)
			}
			t.Logf("%s: %d claims", name, claims)
		})
	}
}
