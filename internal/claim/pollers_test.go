package claim

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// TestNoticesCauseFewStatements: however many notices come, an idle worker sends few statements for
// notices of its own queues, and none for others.
func TestNoticesCauseFewStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		notice         string
		every          time.Duration
		claims, sweeps int // the most in two seconds
	}{
		{"mails", time.Millisecond, 0, 1}, // the first sweep
		{"mails mine2 min", time.Millisecond, 0, 1},
		{"mine", time.Millisecond, 401, 101},
		{"mails mine", time.Millisecond, 401, 101},
		{"", time.Millisecond, 401, 101},
		{"mine", time.Second, 2, 3}, // each immediately
	} {
		synctest.Test(t, func(t *testing.T) {
			claims, sweeps, waited := 0, 0, time.Duration(0)
			var noticed atomic.Value // a time
			noticed.Store(time.Now())
			p := newTestPoller(PollerConfig{
				Queue: "mine", Budget: run.NewBudget(1, 0), Log: slog.New(slog.DiscardHandler),
				Handlers: map[string]*run.Handler{"k": {Kind: "k", Queue: "mine"}}, OneStatement: true,
				Policies: policiesOf(map[string]*control.CompiledPolicy{"k": control.Compile(backoff.Zizq())}),
				Table: fakeTable{claim: func(store.ClaimParams) ([]*store.Claim, error) {
					claims++
					last, _ := noticed.Load().(time.Time)
					waited = max(waited, time.Since(last))
					return nil, nil
				}},
				Dispatcher: noDispatcher{}, AscendingIDs: true, PollInterval: time.Hour,
			}, fakeFinder{find: func() ([]store.Head, error) { sweeps++; return nil, nil }})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+time.Millisecond)
			defer cancel()
			go func() {
				for retry.Pause(ctx, c.every) == nil {
					noticed.Store(time.Now())
					p.All.Notified(c.notice)
				}
			}()
			p.work(ctx)
			synctest.Wait()
			if claims > c.claims || claims < c.claims/2 || sweeps > c.sweeps || sweeps < c.sweeps/2 {
				t.Errorf("notices for %q each %v: %d claims and %d sweeps in 2 s", c.notice, c.every, claims, sweeps)
			}
			if waited > requestPause {
				t.Errorf("notices for %q each %v: a claim came %v after the last", c.notice, c.every, waited)
			}
		})
	}
}
