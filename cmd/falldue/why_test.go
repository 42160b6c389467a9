package main

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestWorkersAndWhy: what the commands print, and their statuses.
func TestWorkersAndWhy(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		if got := s.run("workers"); got != "no worker has announced itself\n" {
			t.Errorf("workers printed %q", got)
		}
		s.run("enqueue", "charge", "--delay", "10h")
		out, _ := s.fails(exitWaits, "why", "1")
		contains(t, out, `^task 1, of kind charge in queue default, cannot run now, and nobody knows when it will: see due, worker\n\nok   state     open\n`,
			`(?m)^no   due       it was enqueued for .* UTC; due in (10h|9h59m).*$`, `(?m)^no   worker    no live worker handles kind charge in queue default$`)
		s.serve("charge")
		s.run("enqueue", "mail", "--queue", "images")
		out, _ = s.fails(exitAttention, "workers")
		contains(t, out, `(?m)^worker +release +running +done +failed +kinds +up +seen +queues$`, `(?m)^\S+ +\S+ +0 of 10 +0 +0 +1 +\S+ +\S+ ago +default$`,
			`(?m)^no live worker handles kind mail in queue images, where tasks wait$`)
		out, _ = s.fails(exitAttention, "workers", "--json")
		contains(t, out, `^{"id":"[^"]+","host":"[^"]+","pid":\d+,.*"live":true,"stopping":false,"running":0,"done":0,"failed":0,"queues":{"default":{"concurrency":10}},"kinds":{"charge":{"policy":"delay 12h[^"]+"}},"started_at":"[^"]+","seen_at":"[^"]+"}\n{"unhandled_kind":"mail","queue":"images"}\n$`)

		out, _ = s.fails(exitWaits, "why", "1")
		contains(t, out, `^task 1, of kind charge in queue default, cannot run now\. It can in (10h|9h59m\d*s?), at .* UTC, if a handler is free then: see due\n`)
		out, _ = s.fails(exitWaits, "why", "1", "--json")
		var got struct {
			Runnable, Running bool
			Next              time.Time
			Conditions        []struct {
				Condition, Text string
				Holds           bool
				Ends            time.Time
			}
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		for _, c := range got.Conditions {
			if (c.Condition == "due") == c.Holds || c.Holds != c.Ends.IsZero() || c.Text == "" {
				t.Errorf("%+v", c)
			}
		}
		if got.Runnable || got.Running || time.Until(got.Next) < 9*time.Hour {
			t.Errorf("%+v", got)
		}
		s.db.MustExec("update falldue_tasks set attempts = 1, fence = 1 where id = 1")
		s.age(10*time.Hour-5*time.Minute, "id = 1") // its wait counts from in 5 minutes on
		s.run("policy", "hold", "charge", "until", "3h")
		out, _ = s.fails(exitWaits, "why", "1")
		contains(t, out, `It can in (3h|2h59m\d*s?), at .* UTC, if a handler is free then: see due\n`,
			`(?m)^no   due       .*; held until \S+ \S+ UTC, in (3h|2h59m\d*s?); then due, after 30m\d+s by the policy delay 12h.*; the policy "hold" is set for kind:charge until \S+ \S+ UTC$`)
		shown := regexp.MustCompile(`(?m)^ +2  \S+ +(.*)$`).FindStringSubmatch(s.run("show", "1"))
		if len(shown) == 0 || !strings.Contains(out, "at "+shown[1]+" UTC, if a handler") {
			t.Errorf("show says %q, and why\n%s", shown, out)
		}
		s.run("policy", "ramp", "charge", "over", "20m")
		out, _ = s.fails(exitWaits, "why", "1")
		contains(t, out, `It can in (3[0-9]|4[0-9])m\d*s?, at `, `(?m)^no   due       .*; the policy "own \+ \d+s" \(step 1 of 20\) is set for kind:charge until `)
		s.run("policy", "clear", "charge")
		s.run("cancel", "1", "--yes")
		out, _ = s.fails(exitWaits, "why", "1")
		contains(t, out, `^task 1, of kind charge in queue default, is cancelled and does not run again by itself\n\nno   state     cancelled since .*; "falldue retry" lets it run again\n$`)
		if out, _ := s.fails(exitNotFound, "why", "99"); out != "" {
			t.Errorf("why of a missing task printed %q", out)
		}

		started, end := make(chan struct{}, 10), make(chan struct{})
		s.run("enqueue", "sync", "--key", "seven")
		s.run("enqueue", "sync", "--key", "seven")
		s.work(func(q *falldue.Queue) {
			falldue.Handle(q, falldue.NewKind[struct{}]("sync", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(1).PerKey()}}), func(context.Context, falldue.Task[struct{}]) error {
				started <- struct{}{}
				<-end
				return nil
			})
		}, func(*falldue.Queue) bool {
			<-started
			contains(t, s.run("why", "3"), `^task 3, of kind sync in queue default, runs\n\nok   state     open\nno   claim     \S+ has run it since .*; its lease lasts until .*\n$`)
			out, _ := s.fails(exitWaits, "why", "4")
			contains(t, out, `(?m)^no   limit     AtMost\(1\)\.PerKey\(\) of kind sync, for key seven, admits no more task; 1 permit taken, by task 3$`)
			close(end)
			return true
		})
	})
}

// TestTwoReleasesAreNamed: where numbers go by the policy of one of them, a line says so.
func TestTwoReleasesAreNamed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.failed("charge", 3, time.Minute)
		s.serve("charge")
		several := `workers have 2 policies for kind charge: delay 12h \S.* of 1 worker.*; delay 2h of 1 worker[^;]*`
		commands := map[string][]string{
			`(?m)^releases +` + several + `.*; the first is shown$`:                                                                     {"show", "1"},
			`(?m)^` + several + `; numbers are by the first$`:                                                                           {"forecast"},
			`\n` + several + `; numbers are by the first\n`:                                                                             {"policy", "diff", "charge", "1h"},
			`(?s)\n` + several + `; numbers are by the first\n$`:                                                                        {"policy", "set", "charge", "2 * own", "--dry-run"},
			`"kind":"charge".*"kind_policies":\[\{"kind":"charge","policy":"delay 12h[^"]*","workers":\["[^"]+"\].*"policy":"delay 2h"`: {"forecast", "--json"},
		}
		for _, args := range commands {
			if out := s.run(args...); strings.Contains(out, "policies") {
				t.Errorf("with one release %v prints\n%s", args, out)
			}
		}
		var info string
		if err := s.db.Get(&info, "select info from falldue_workers"); err != nil {
			t.Fatal(err)
		}
		other := regexp.MustCompile(`delay 12h[^"]*`).ReplaceAllString(info, "delay 2h")
		s.db.MustExec(s.db.Rebind("insert into falldue_workers (id, started_at, seen_at, info, done, failed, running) select 'zz', started_at, seen_at, ?, 0, 0, 0 from falldue_workers"), other)
		for want, args := range commands {
			contains(t, s.run(args...), want)
		}
	})
}

// TestTextsOfConditions has those that the tables of other tests do not bring about.
func TestTextsOfConditions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	task := falldue.TaskInfo{ID: 7, Kind: "mail", Queue: "default", Attempts: 3, LastError: "no such address", Now: now}
	for _, c := range []struct {
		condition  ops.Condition
		name, text string
	}{
		{ops.WhyState{State: falldue.Dead, Since: now.Add(-time.Hour)}, "state", `dead since 2026-12-11 13:02:00 UTC, 1h ago, after 3 attempts; the last error: no such address; "falldue retry" lets it run again`},
		{ops.WhyState{State: falldue.Done, Since: now}, "state", "done since 2026-12-11 14:02:00 UTC, now"},
		{ops.WhyMembers{Counts: flow.Counts{Done: 1234, Pending: 1}, WaitsFor: []int64{7}, OnDeath: flow.StaysBlocked}, "members", "it runs after 1,235 tasks: 1,234 done, 1 not ended; it waits for task 7"},
		{ops.WhyMembers{Counts: flow.Counts{Done: 1, Dead: 1, Cancelled: 1}, Failed: []int64{7, 8}, OnDeath: flow.StaysBlocked}, "members", `it runs after 3 tasks: 1 done, 1 dead, 1 cancelled; dead or cancelled: task 7 8, which "falldue retry" lets run again; this one stays blocked until then`},
		{ops.WhyMembers{Counts: flow.Counts{Pending: 1}, WaitsFor: []int64{7}, OnDeath: flow.IsCancelled}, "members", "it runs after 1 task: 1 not ended; it waits for task 7; at a death it is cancelled"},
		{ops.WhyClaim{Worker: "w", Lost: true, Until: now.Add(-time.Minute)}, "claim", "nobody runs it any more: the lease of w ended 2026-12-11 14:01:00 UTC, 1m ago; that worker, which was not seen within the last minute, has died or cannot reach the database"},
		{ops.WhyAttempts{Attempts: 3, Most: 3}, "attempts", "3 of 3 used: none is left, and it becomes dead when it falls due"},
		{ops.WhyAttempts{Attempts: 1, Most: 3}, "attempts", "1 of 3 used"},
		{ops.WhyPolicy{Key: "k", Err: errors.New("policy k is not in the policies table")}, "policy", "its own policy cannot be read, and workers leave it alone: policy k is not in the policies table"},
		{ops.WhyDue{Snoozed: true, Anchor: now.Add(time.Hour), Now: now, Rules: []ops.DueRule{{At: now.Add(time.Hour)}}}, "due", "it is snoozed until 2026-12-11 15:02:00 UTC; due in 1h, at 2026-12-11 15:02:00 UTC"},
		{ops.WhyDue{Attempts: 3, Failed: now, Jitter: 5 * time.Second, Now: now, Rules: []ops.DueRule{
			{Policy: "delay 1m", Delay: time.Minute, At: now.Add(time.Minute), Workers: []string{"a"}},
			{Policy: "delay 2m", Delay: 2 * time.Minute, At: now.Add(2 * time.Minute), Workers: []string{"b", "c"}},
		}}, "due", "attempt 3 failed at 2026-12-11 14:02:00 UTC, and the wait counts from 5s later, the jitter that was drawn; due in 1m, at 2026-12-11 14:03:00 UTC, after 1m by the policy delay 1m of a; due in 2m, at 2026-12-11 14:04:00 UTC, after 2m by the policy delay 2m of b c"},
		{ops.WhyDue{Attempts: 3, Failed: now, Now: now, Rules: []ops.DueRule{{Policy: "delay 1m", Delay: time.Minute, At: now.Add(time.Hour), From: now.Add(time.Hour)}}},
			"due", "attempt 3 failed at 2026-12-11 14:02:00 UTC; held until 2026-12-11 15:02:00 UTC, in 1h; then due, after 1m by the policy delay 1m"},
		{ops.WhyDue{Attempts: 3, Failed: now, Now: now, Rules: []ops.DueRule{{Policy: "delay 2h", Delay: 2 * time.Hour, At: now.Add(2 * time.Hour), From: now.Add(time.Hour)}}},
			"due", "attempt 3 failed at 2026-12-11 14:02:00 UTC; held until 2026-12-11 15:02:00 UTC, in 1h; then due in 2h, at 2026-12-11 16:02:00 UTC, after 2h by the policy delay 2h"},
		{ops.WhyDue{Attempts: 2, Anchor: now, Now: now}, "due", "its wait after 2 attempts counts from 2026-12-11 14:02:00 UTC, as when a lease ends; its policy is not known, since no live worker handles its kind; give it with --policy"},
		{ops.WhyPause{Pauses: []falldue.Pause{{Subject: falldue.Subject{Kind: "mail"}, At: now.Add(-time.Hour), Until: now.Add(time.Hour), Who: "ann", Why: "closed"}, {Subject: falldue.Subject{Queue: "default"}, At: now}}}, "pause", "kind:mail is paused by ann since 2026-12-11 13:02:00 UTC, 1h ago, until 2026-12-11 15:02:00 UTC, in 1h: closed; queue:default is paused since 2026-12-11 14:02:00 UTC, now, until somebody resumes it"},
		{ops.WhyWorker{Stopping: []string{"a"}, InQueue: []string{"b"}, OfKind: []string{"c"}}, "worker", "no live worker handles kind mail in queue default; shutting down: a; in its queue, without a handler of its kind: b; with a handler of its kind, in other queues: c"},
		{ops.WhyWorker{Workers: []string{"1", "2", "3", "4", "5", "6", "7"}}, "worker", "live workers of its queue that handle its kind: 1 2 3 4 5 and 2 more"},
		{ops.WhyLimit{Limit: "Rate(5, 1m0s)", Owner: "queue default", Taken: []int64{1, 2}, Free: now.Add(time.Second)}, "limit", "Rate(5, 1m0s) of queue default, admits no more task; 2 permits taken, by task 1 2; the next one in 1s, at 2026-12-11 14:02:01 UTC"},
		{ops.WhySequence{Next: 4, Runs: true}, "sequence", "task 4 comes before it, and runs"},
		{ops.WhySequence{Next: 4, Halted: true}, "sequence", "task 4 comes before it, is dead, and halts the sequence: retry, cancel or delete it"},
		{ops.WhySequence{Next: 4}, "sequence", "task 4 comes before it, and waits"},
		{ops.WhySequence{}, "sequence", "it is the next one of its key"},
		{ops.WhyLock{Locked: true, Known: true}, "lock", "a transaction has locked its row, and workers pass it over"},
		{ops.WhyLock{}, "lock", "whether somebody has locked its row is not known: the server cannot tell, or this user may not lock rows"},
		{ops.WhyRank{Ahead: 10_000, More: true}, "rank", "more than 10,000 tasks of its lane come before it"},
		{ops.WhyRank{Ahead: 1234}, "rank", "1,234 before it in its lane"},
	} {
		if name, text := describe(c.condition, task); name != c.name || text != c.text {
			t.Errorf("%+v is %s: %s\nwant %s: %s", c.condition, name, text, c.name, c.text)
		}
	}
}

// TestPoliciesOfTwoReleasesAreShown: each with its workers, above what nobody handles.
func TestPoliciesOfTwoReleasesAreShown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	worker := func(id, release string, delay time.Duration) ops.Worker {
		return ops.Worker{
			ID: id, Release: release, Started: now.Add(-time.Hour), Seen: now.Add(-5 * time.Second), Now: now,
			Queues: map[string]ops.WorkerQueue{"default": {Concurrency: 10}}, Kinds: map[string]ops.WorkerKind{"charge": {Policy: backoff.Constant(delay).String()}},
		}
	}
	list := []ops.Worker{worker("a", "v1.2.3", time.Hour), worker("b", "v1.2.4", time.Minute), worker("c", "v1.2.4", time.Minute)}
	list[0].Stopping = true
	lost := worker("d", "v1.2.3", time.Second)
	lost.Seen = now.Add(-2 * time.Minute)
	f := fleet{workers: append(list, lost), policies: ops.KindPolicies(list), unhandled: []ops.QueueKind{{Queue: "images", Kind: "thumbnail"}}}
	out := make(lines, 100)
	if err := f.print(screen{Writer: out}); err != nil {
		t.Fatal(err)
	}
	close(out)
	got := ""
	for part := range out {
		got += part
	}
	want := `worker  release  running  done  failed  kinds  up  seen              queues
a       v1.2.3   0 of 10     0       0      1  1h  5s ago, stopping  default
b       v1.2.4   0 of 10     0       0      1  1h  5s ago            default
c       v1.2.4   0 of 10     0       0      1  1h  5s ago            default
d       v1.2.3   0 of 10     0       0      1  1h  2m ago, lost      default

kinds for which workers have different policies, as while a release is being deployed:
kind    workers  releases  policy
charge        2  v1.2.4    delay 1m
charge        1  v1.2.3    delay 1h

no live worker handles kind thumbnail in queue images, where tasks wait
`
	if got != want || !f.attention() {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
}
