package ops_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestSimulateTakesABacklog: what waits runs when it is due, under a policy or under those that
// hold, and waits for workers.
func TestSimulateTakesABacklog(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.failing()
		b.add("charge", 20, 3, time.Minute)
		b.add("mail", 5, 0, time.Minute)
		i := b.ops(map[string]backoff.Policy{"mail": parse(t, "2h")})
		backlog := func(kind string) *ops.Backlog {
			t.Helper()
			p, err := i.Profile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			list, err := p.Backlog(kind)
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		s := ops.Scenario{PerSecond: 0.01, Workers: 1000, Backlog: backlog("mail")}
		if s.Backlog.Tasks != 605 {
			t.Errorf("the backlog has %d tasks", s.Backlog.Tasks)
		}
		run := func(policy string) (r ops.Recovery) {
			t.Helper()
			var err error
			if policy == "" {
				r, err = ops.SimulateBacklog(t.Context(), s)
			} else {
				r, err = ops.Simulate(t.Context(), parse(t, policy), s)
			}
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := run(""); r.Failed != 0 || r.Retries != 600 || r.Dead != 0 || (r.Recovered-2*time.Hour).Abs() > 2*time.Minute || r.Load[0] < 5 || r.Load[0] > 8 || r.LongestWait != 0 {
			t.Errorf("under what holds: %+v", r)
		}
		s.Handler, s.Workers = time.Second, 1
		if r := run("30m"); r.Retries != 600 || r.Load[0] != 60 || (r.LongestWait-310*time.Second).Abs() > 30*time.Second || (r.Recovered-30*time.Minute).Abs() > 2*time.Minute {
			t.Errorf("with one worker: %+v", r)
		}
		s.Handler, s.Workers = 0, 1000
		if r := run("delay 30m; attempts 1"); r.Dead != 600 || r.Retries != 0 {
			t.Errorf("without an attempt left: %+v", r)
		}
		s.Outage = 10 * time.Minute
		if r := run("delay 30m; attempts 2"); !about(int64(r.Dead), 400, 15) || r.Failed < r.Dead || !about(int64(r.Retries), 600+11, 10) {
			t.Errorf("during an outage: %+v", r)
		}
		if r := run("2d"); r.Later < 600 || r.Retries != 0 {
			t.Errorf("later than a day: %+v", r)
		}
		if err := ops.New(b.queue).SetPolicy(t.Context(), falldue.Subject{Kind: "mail"}, ops.Hold(), ops.OverrideOptions{Until: time.Now().Add(3 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		s.Backlog = backlog("mail")
		if r := run(""); r.Peak < 600 || len(r.Load) < 180 || r.Peak != slices.Max(r.Load[179:]) {
			t.Errorf("on hold: a peak of %d in %d minutes", r.Peak, len(r.Load))
		}

		p, err := i.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Backlog(""); err == nil || !strings.Contains(err.Error(), "the policy of kind charge is unknown, and the kind has waiting tasks: set the policy with Ops.WithPolicies") {
			t.Errorf("error %v", err)
		}
		i = b.ops(map[string]backoff.Policy{"": parse(t, "2h")})
		s.Backlog = backlog("")
		if r := run(""); s.Backlog.Tasks != 625 || !about(int64(r.Retries), 631, 3) {
			t.Errorf("all kinds: %d tasks, %d retries", s.Backlog.Tasks, r.Retries)
		}
		if _, err := ops.SimulateBacklog(t.Context(), ops.Scenario{PerSecond: 1, Workers: 1}); err == nil || !strings.Contains(err.Error(), "no task waits") {
			t.Errorf("error %v", err)
		}
	})
}
