package claim

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
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
