package dash

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// TestVerdicts: each thing that may be wrong has a sentence that says since when, and a link that
// leads to what helps.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	queues := []ops.Queue{{Name: "default", Kinds: []string{"webhook"}, Lanes: 1, FirstDue: now.Add(-time.Hour), Now: now}}
	worker := func(running int, recent ops.Runs) ops.Worker {
		return ops.Worker{ID: "w", Now: now, Seen: now, Queues: map[string]ops.WorkerQueue{"default": {Concurrency: 10, Running: running}}, Kinds: map[string]ops.WorkerKind{"webhook": {}},
			Recent: map[string]ops.Runs{"webhook": recent}, RecentTime: 5 * time.Minute}
	}
	group := ops.FailureGroup{Queue: "default", Kind: "webhook", Error: "503", Waiting: 200, First: now.Add(-30 * time.Minute), Last: now}
	dead := group
	dead.Waiting, dead.Dead = 0, 7
	for _, c := range []struct {
		name  string
		state state
		level ops.Level
		text  string
		since time.Duration
		link  string
	}{
		{"nothing", state{}, ops.Fine, "", 0, ""},
		{"fine", state{Pulse: ops.Pulse{Workers: []ops.Worker{worker(1, ops.Runs{Done: 100, Failed: 3})}, Queues: queues}}, ops.Fine, "", 0, ""},
		{"no worker", state{Pulse: ops.Pulse{Queues: queues}}, ops.Broken, "No worker is running", time.Hour, "workers"},
		{"failing", state{Pulse: ops.Pulse{Workers: []ops.Worker{worker(1, ops.Runs{Failed: 100})}, Queues: queues}, Failures: ops.Failures{Groups: []ops.FailureGroup{group}, At: now}}, ops.Broken, "webhook is failing: 100 of 100 attempts", 30 * time.Minute, "policy?factor=4&form=slow&subject=kind%3Awebhook"},
		{"backing off", state{Pulse: ops.Pulse{Workers: []ops.Worker{worker(1, ops.Runs{})}, Queues: queues}, Failures: ops.Failures{Groups: []ops.FailureGroup{group}, At: now}}, ops.Attention, "200 tasks of kind webhook have failed and are waiting", 30 * time.Minute, "policy?subject=kind%3Awebhook"},
		{"dead", state{Pulse: ops.Pulse{Workers: []ops.Worker{worker(1, ops.Runs{})}, Queues: queues}, Failures: ops.Failures{Groups: []ops.FailureGroup{dead}, At: now}}, ops.Attention, "Kind webhook has 7 dead tasks", 30 * time.Minute, "bulk?do=retry&kind=webhook&state=dead"},
		{"busy", state{Pulse: ops.Pulse{Workers: []ops.Worker{worker(10, ops.Runs{})}, Queues: queues}, Overdue: []ops.Overdue{{Queue: "default", Kind: "webhook", Tasks: 1000, More: true, DueSince: now.Add(-time.Hour)}}}, ops.Attention, "1,000 or more tasks of kind webhook in queue default overdue, and all 10 handlers", time.Hour, "tasks?kind=webhook&order=oldest&phase=due&queue=default"},
		{"unhandled", state{Pulse: ops.Pulse{Workers: []ops.Worker{{ID: "w", Now: now, Seen: now}}, Queues: queues}, Overdue: []ops.Overdue{{Queue: "default", Kind: "webhook", Tasks: 3, DueSince: now.Add(-time.Hour)}}}, ops.Broken, "No live worker handles kind webhook", time.Hour, "tasks?kind=webhook&order=oldest&queue=default"},
		{"lost", state{Pulse: ops.Pulse{Workers: []ops.Worker{worker(1, ops.Runs{})}, Lost: []ops.Worker{{ID: "gone", Seen: now.Add(-time.Hour)}}, Queues: queues}}, ops.Attention, "1 worker stopped without notice", time.Hour, "workers"},
		{"late", state{Schedules: []periodic.Info{{Name: "nightly", Next: now.Add(-time.Hour), Now: now}}}, ops.Attention, "Schedule nightly has missed its tick", time.Hour, "schedules"},
	} {
		c.state.At, c.state.Errors = now, true
		v := judge(c.state)
		if v.Level != c.level {
			t.Errorf("%s: the level is %v", c.name, v.Level)
		}
		if c.level == ops.Fine {
			if len(v.Causes) > 0 || v.Text == "" {
				t.Errorf("%s: %+v", c.name, v)
			}
			continue
		}
		first := v.Causes[0]
		if !strings.Contains(first.Text, c.text) || now.Sub(first.Since) != c.since || !strings.Contains(fmt.Sprint(first.Links), c.link) {
			t.Errorf("%s: %+v", c.name, first)
		}
	}
}

// TestVerdictFoldsKindsWithOneError: a partner that is down makes many kinds fail, which is one cause.
func TestVerdictFoldsKindsWithOneError(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	w := ops.Worker{ID: "w", Now: now, Seen: now, Recent: map[string]ops.Runs{}, RecentTime: 5 * time.Minute}
	s := state{Failures: ops.Failures{At: now}, Errors: true}
	s.At = now
	for i, kind := range []string{"a", "b", "c", "d", "other"} {
		w.Recent[kind] = ops.Runs{Failed: 100}
		g := ops.FailureGroup{Queue: "default", Kind: kind, Error: "the partner is down", First: now.Add(-time.Duration(i) * time.Minute), Last: now}
		if kind == "other" {
			g.Error = "no route"
		}
		s.Failures.Groups = append(s.Failures.Groups, g)
	}
	s.Workers = []ops.Worker{w}
	v := judge(s)
	if len(v.Causes) != 2 || v.Causes[0].Text != "4 kinds are failing: a, b, c and 1 more" || now.Sub(v.Causes[0].Since) != 3*time.Minute || !strings.Contains(v.Causes[0].Advice, "the partner is down") {
		t.Errorf("the causes are %+v", v.Causes)
	}
	s.Errors = false // the user has no permission to see errors
	if v := judge(s); len(v.Causes) != 5 {
		t.Errorf("without errors the causes are %+v", v.Causes)
	}
}

// TestVerdictSaysSinceWhenByTheHistory: the newest failures are minutes old, but the kind has failed for longer.
func TestVerdictSaysSinceWhenByTheHistory(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 30, 0, time.UTC)
	worker := ops.Worker{ID: "w", Now: now, Seen: now, Recent: map[string]ops.Runs{"webhook": {Failed: 100}}, RecentTime: 5 * time.Minute}
	group := ops.FailureGroup{Queue: "default", Kind: "webhook", Error: "503", Waiting: 200, First: now.Add(-12 * time.Minute), Last: now, Earlier: true}
	minute := func(back int, done, failed, dead int64) ops.Span {
		return ops.Span{At: now.Truncate(time.Minute).Add(-time.Duration(back) * time.Minute), Kind: "webhook", Queue: "default", Done: done, Failed: failed, Dead: dead}
	}
	for name, c := range map[string]struct {
		minutes []ops.Span
		since   time.Duration
		earlier bool
	}{
		"no history":              {nil, 12 * time.Minute, true},
		"of another kind":         {[]ops.Span{{At: now.Add(-time.Hour), Kind: "mail", Failed: 9}}, 12 * time.Minute, true},
		"well before":             {[]ops.Span{minute(50, 900, 1, 0), minute(40, 2, 900, 0), minute(20, 0, 9, 9), minute(1, 0, 900, 8)}, 40*time.Minute + 30*time.Second, false},
		"two queues":              {[]ops.Span{minute(50, 900, 1, 0), minute(40, 2, 900, 0), minute(30, 9, 5, 0), minute(30, 0, 5, 0), minute(1, 0, 900, 8)}, 40*time.Minute + 30*time.Second, false},
		"since the history began": {[]ops.Span{minute(59, 0, 900, 1), minute(1, 0, 900, 8)}, 59*time.Minute + 30*time.Second, true},
		"less than the failures":  {[]ops.Span{minute(3, 900, 0, 0), minute(2, 0, 900, 8)}, 12 * time.Minute, true},
	} {
		s := state{Pulse: ops.Pulse{At: now, Workers: []ops.Worker{worker}}, Failures: ops.Failures{Groups: []ops.FailureGroup{group}, At: now}, Minutes: c.minutes}
		first := judge(s).Causes[0]
		if now.Sub(first.Since) != c.since || first.Earlier != c.earlier {
			t.Errorf("%s: since %v, earlier %v", name, now.Sub(first.Since), first.Earlier)
		}
	}
}
