package upkeep

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// TestUnusedLimitsAreReported: limits per key that count no task are logged after ten tasks or a minute, then once a
// minute while tasks run or not, and announced, until they count one.
func TestUnusedLimitsAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		tenant := store.Limit{Text: `AtMost(2).PerKey("tenat")`, PerKey: true, Part: "tenat", Form: store.Running, Most: 2}
		order := store.Limit{Text: "InOrder()", PerKey: true, Form: store.Sequence, Most: 1}
		all := store.Limit{Text: "AtMost(5)", Form: store.Running, Most: 5}
		health := control.NewHealthReport()
		u := NewUnusedLimits(map[string]*run.Handler{"charge": {Limits: []store.Limit{tenant, order, all}}, "mail": {Limits: []store.Limit{all}}},
			map[string][]store.Limit{"tenant:*": {tenant}, "default": {all}}, health, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); u.Work(ctx) }()
		start := func(n int, queue, kind, key string) {
			for range n {
				c := &store.Claim{From: store.Lane{Kind: kind, Key: key}}
				c.ID = 7
				u.Started(&run.Run{Env: &run.Env{Queue: queue}, ClaimResult: outcome.ClaimResult{Claim: c}})
			}
		}
		after := func(what string, d time.Duration, announced map[string]string, lines ...string) {
			t.Helper()
			time.Sleep(d) // by the clock of the bubble
			synctest.Wait()
			var info store.WorkerInfo
			if health.AddTo(&info); !maps.Equal(info.UnusedLimits, announced) {
				t.Errorf("%s: the worker announces %v, want %v", what, info.UnusedLimits, announced)
			}
			text := log.take()
			if n := strings.Count(text, "\n"); n != len(lines) {
				t.Errorf("%s: %d lines, want %d:\n%s", what, n, len(lines), text)
			}
			for _, line := range lines {
				if !strings.Contains(text, "the limit has no effect\" "+line+"\n") {
					t.Errorf("%s: lacks %s:\n%s", what, line, text)
				}
			}
		}
		both := map[string]string{"kind charge": `AtMost(2).PerKey("tenat"), InOrder()`}
		start(9, "default", "charge", "")
		start(20, "default", "mail", "")
		after("nine tasks", time.Second, nil)
		start(1, "default", "charge", "")
		after("ten tasks", time.Second, both, `kind=charge limit="AtMost(2).PerKey(\"tenat\"), InOrder()" count=10 task=7`)
		start(1, "default", "charge", "tenant=4")
		one := map[string]string{"kind charge": tenant.Text}
		after("a key without the part", time.Second, one)
		start(1, "tenant:4", "mail", "tenant=4")
		one["queue tenant:*"] = tenant.Text
		after("a minute", time.Minute, one, `queue=tenant:* limit="AtMost(2).PerKey(\"tenat\")" count=1 task=7`)
		start(1, "default", "charge", "endpoint=7/tenat")
		after("another minute", time.Minute, one, `kind=charge limit="AtMost(2).PerKey(\"tenat\")" count=12 task=7`, `queue=tenant:* limit="AtMost(2).PerKey(\"tenat\")" count=1 task=7`)
		start(1, "tenant:4", "charge", "endpoint=7/tenat=4")
		after("a key with the part", time.Second, nil)
		start(100, "tenant:4", "charge", "")
		after("other keys later", 5*time.Minute, nil)
		stop()
		<-ended
	})
}
