package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

func TestSimulateComparesPolicies(t *testing.T) {
	t.Parallel()
	args := []string{"simulate", "10s", "delay 1m; attempts 3", "--outage", "10m", "--per-second", "1", "--handler", "100ms"}
	contains(t, mustRun(t, args...), `(?m)^policy +failed +retries +dead +busiest minute +longest wait +recovered$`,
		`(?m)^10s +600 +18,\d+ +0 +[\d,]+ +0s +after 10\S*s$`, `(?m)^delay 1m; attempts 3 +600 +1,\d+ +4\d\d +[\d,]+ +0s +after \S+$`)
	var r struct {
		Policy string
		Failed int
		Load   []int
	}
	first, _, _ := strings.Cut(mustRun(t, append(args, "--json")...), "\n")
	if err := json.Unmarshal([]byte(first), &r); err != nil || r.Policy != "10s" || r.Failed != 600 || len(r.Load) != 11 {
		t.Errorf("simulate --json: %+v, error %v", r, err)
	}
	if _, err := execute(t, "simulate", "10s", "--per-second", "1000"); err == nil || !strings.Contains(err.Error(), "the backlog never ends") || exitStatus(err) != exitUsage {
		t.Errorf("too much work: error %v", err)
	}
}

// TestSimulateTakesWhatWaits: with the rate and the handlers of live workers, and under what
// holds.
func TestSimulateTakesWhatWaits(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.failed("charge", 400, 30*time.Minute)
		s.failed("report", 10, 30*time.Minute)
		for says, args := range map[string][]string{
			"no live worker handles these tasks; set the number of handlers with --workers":              {"--backlog"},
			"the live workers have ended no attempt yet; set the arrival rate with --per-second":         {"--backlog", "--workers", "1"},
			"the policy of kind charge is unknown, and the kind has waiting tasks: set it with --policy": {"--backlog", "--workers", "1", "--per-second", "1", "--kind", "charge"},
			"no FORMULA is given; give at least one, or use --backlog to simulate":                       nil,
			"--kind needs --backlog: it selects waiting tasks":                                           {"1h", "--kind", "charge"},
		} {
			if _, err := s.fails(exitUsage, append([]string{"simulate"}, args...)...); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v: error %v, want %q", args, err, says)
			}
		}
		s.serve("charge")
		s.db.MustExec("insert into falldue_workers (id, started_at, seen_at, info, recent) select 'other', " +
			"seen_at, seen_at, info, '{\"over\":100000000000,\"kinds\":{\"charge\":{\"done\":20}}}' from falldue_workers")
		out := s.run("simulate", "--backlog", "--kind", "charge", "10m", "1h", "--outage", "5m", "--handler", "1s", "--policy", "charge=40m", "--policy", "2d")
		contains(t, out, `^400 tasks of kind charge wait; 0\.2 new tasks arrive per second, for 20 handlers\n\n`, `(?m)^policy +failed +retries +dead +busiest minute +longest wait +recovered +later$`,
			`(?m)^current policy +\d\d +4\d\d +0 +[2-4]\d\d +(1[89]\S*s|20s) +after \S+ +0$`, `(?m)^10m +4\d\d +[89]\d\d +0 `, `(?m)^1h +\d\d +4\d\d +0 `)
		out = s.run("simulate", "--backlog", "--policy", "charge=40m", "--policy", "2d", "--json", "--workers", "30")
		contains(t, out, `^{"policy":"current policy",.*"later":1\d,"backlog":410,"per_second":0\.2,"workers":30}\n$`)
		s.run("policy", "hold", "charge", "until", "30h", "--policy", "charge=40m")
		contains(t, s.run("simulate", "--backlog", "--kind", "charge", "--policy", "charge=40m", "--outage", "0s"), `(?m)^current policy +0 +0 +0 .* 400$`)
	})
}

// TestLimitsAreNamed: forecast and simulate name the limits that they leave out, and simulate takes the
// rate of failed attempts while a partner is down.
func TestLimitsAreNamed(t *testing.T) {
	t.Parallel()
	s := openShop(t, testdb.SQLite)
	s.failed("charge", 400, 30*time.Minute)
	s.failed("report", 10, 30*time.Minute)
	s.serveWith(falldue.Config{Queues: map[string]falldue.QueueConfig{"default": {Limits: []falldue.Limit{falldue.AtMost(30)}}}}, func(q *falldue.Queue) {
		policy := backoff.Constant(100 * time.Hour)
		charge := falldue.NewKind[struct{}]("charge", falldue.KindConfig{Policy: policy, Limits: []falldue.Limit{falldue.InOrder()}})
		falldue.Handle(q, charge, func(context.Context, falldue.Task[struct{}]) error { return nil })
		report := falldue.NewKind[struct{}]("report", falldue.KindConfig{Policy: policy})
		falldue.Handle(q, report, func(context.Context, falldue.Task[struct{}]) error { return nil })
	}, func() {})
	contains(t, s.run("forecast"), `(?m)^tasks may start later than shown, because of limits: AtMost\(30\) of queue default, InOrder\(\) of kind charge$`, `(?m)^all `)
	contains(t, s.run("forecast", "--kind", "report"), `\Akind .*\nreport +0 `, `(?m)because of limits: AtMost\(30\) of queue default$`)
	contains(t, s.run("forecast", "--kind", "report", "--json"), `(?m)\A{"kind":"report",.*"later":10,.*"limits_not_included":\["AtMost\(30\) of queue default"\]}\n{"kind":"",.*"later":10,`)
	contains(t, s.run("forecast", "--kind", "unknown"), `\Akind .*\nunknown +0 `)
	s.db.MustExec("insert into falldue_workers (id, started_at, seen_at, info, recent) select 'other', " +
		"seen_at, seen_at, info, '{\"over\":100000000000,\"kinds\":{\"charge\":{\"failed\":20}}}' from falldue_workers")
	contains(t, s.run("simulate", "--backlog", "--kind", "charge"), `^400 tasks of kind charge wait; 0\.2 new tasks arrive per second, for \d+ handlers\ntasks may start later than shown, .*: AtMost\(30\) of queue default, InOrder\(\) of kind charge\n\npolicy`)
	contains(t, s.run("simulate", "--backlog", "--json"), `"limits_not_included":\["AtMost`)
}
