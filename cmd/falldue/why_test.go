package main

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestWorkersAndWhy: what the commands print, and their statuses.
func TestWorkersAndWhy(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		if got := s.run("workers"); got != "no worker has sent a heartbeat\n" {
			t.Errorf("workers printed %q", got)
		}
		s.run("enqueue", "charge", "--delay", "10h")
		out, _ := s.fails(exitWaits, "why", "1")
		contains(t, out, `^task 1, of kind charge in queue default, cannot run now\. When it can run is unknown: see due, worker\n\nok   state     open\n`,
			`(?m)^no   due       it was enqueued for .* UTC; due in (10h|9h5\dm).*$`, `(?m)^no   worker    no live worker handles kind charge in queue default$`)
		s.serve("charge")
		s.run("enqueue", "mail", "--queue", "images")
		out, _ = s.fails(exitAttention, "workers")
		contains(t, out, `(?m)^worker +release +running +done +failed +kinds +up +seen +queues$`, `(?m)^\S+ +\S+ +0 of 10 +0 +0 +1 +\S+ +\S+ ago +default$`,
			`(?m)^no live worker handles kind mail in queue images, where tasks wait$`)
		out, _ = s.fails(exitAttention, "workers", "--json")
		contains(t, out, `^{"id":"[^"]+","host":"[^"]+","pid":\d+,.*"live":true,"stopping":false,"running":0,"done":0,"failed":0,"queues":{"default":{"concurrency":10,"running":0}},"kinds":{"charge":{"policy":"delay 12h[^"]+"}},"started_at":"[^"]+","seen_at":"[^"]+"}\n{"unhandled_kind":"mail","queue":"images"}\n$`)

		out, _ = s.fails(exitWaits, "why", "1")
		contains(t, out, `^task 1, of kind charge in queue default, cannot run now\. It can run in (10h|9h5\d\S*), at .* UTC, if a handler is free then: see due\n`)
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
		contains(t, out, `It can run in (3h|2h5\d\S*), at .* UTC, if a handler is free then: see due\n`,
			`(?m)^no   due       .*; held until \S+ \S+ UTC, in (3h|2h5\d\S*); then due, after a delay of 30m\d+s under the policy "delay 12h.*"; the policy "hold" is set for kind:charge until .* UTC\)?$`)
		shown := regexp.MustCompile(`(?m)^ +2  \S+ +(.*)$`).FindStringSubmatch(s.run("show", "1"))
		if len(shown) == 0 || !strings.Contains(out, "at "+shown[1]+" UTC, if a handler") {
			t.Errorf("show says %q, and why\n%s", shown, out)
		}
		s.run("policy", "ramp", "charge", "over", "20m")
		out, _ = s.fails(exitWaits, "why", "1")
		contains(t, out, `It can run in (3[0-9]|4[0-9])m\d*s?, at `, `(?m)^no   due       .*; the policy "original" \(step 1 of 20\) is set for kind:charge until `)
		s.run("policy", "clear", "charge")
		s.run("cancel", "1", "--yes")
		out, _ = s.fails(exitWaits, "why", "1")
		contains(t, out, `^task 1, of kind charge in queue default, is cancelled and is not retried\n\nno   state     cancelled since .*; "falldue retry" retries it\n$`)
		if out, err := s.fails(exitNotFound, "why", "99"); out != "" || !strings.HasSuffix(err.Error(), "no such task: 99; done tasks are deleted immediately, unless the program sets DoneRetention") {
			t.Errorf("why of a missing task printed %q", out)
		}

		started, end := make(chan struct{}, 10), make(chan struct{})
		s.run("enqueue", "sync", "--key", "seven")
		s.run("enqueue", "sync", "--key", "seven")
		s.serveWith(falldue.Config{}, func(q *falldue.Queue) {
			falldue.Handle(q, falldue.NewKind[struct{}]("sync", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(1).PerKey()}}), func(context.Context, falldue.Task[struct{}]) error {
				started <- struct{}{}
				<-end
				return nil
			})
		}, func() { close(end) })
		<-started
		contains(t, s.run("why", "3"), `^task 3, of kind sync in queue default, is running\n\nok   state     open\nno   claim     worker \S+ has run it since .*; the lease lasts until .*\n$`)
		out, _ = s.fails(exitWaits, "why", "4")
		contains(t, out, `(?m)^no   limit     AtMost\(1\)\.PerKey\(\) of kind sync, for key seven, admits no more tasks; 1 permit taken by task 3$`)
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
			`(?m)^` + several + `; the numbers use the first policy$`:                                                                   {"forecast"},
			`\n` + several + `; the numbers use the first policy\n`:                                                                     {"policy", "diff", "charge", "1h"},
			`(?s)\n` + several + `; the numbers use the first policy\n$`:                                                                {"policy", "set", "charge", "2 * original", "--dry-run"},
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
	list[1].Refused = []ops.RefusedOverride{{Subject: "kind:charge", Own: "delay 1m", Holds: "delay 1m", Error: "too large", Workers: []string{"b"}}}
	list[2].Unread = "permission denied"
	list[2].UnreadPolicies = map[string]string{"e0d34d2987c16f66": "unknown name"}
	list[1].RefusedPauses = map[string]string{"shard:3": "not known"}
	list[2].RefusedPauses = map[string]string{"shard:3": "not known"}
	list[2].Queues = map[string]ops.WorkerQueue{"mails": {Concurrency: 10, Running: 10}}
	f := fleet{workers: append(list, lost), policies: ops.KindPolicies(list), unhandled: []ops.QueueKind{{Queue: "images", Kind: "thumbnail"}}, busy: ops.BusyQueues(list), refused: ops.RefusedOverrides(list)}
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
c       v1.2.4   0 of 10     0       0      1  1h  5s ago            mails
d       v1.2.3   0 of 10     0       0      1  1h  2m ago, lost      default

kinds for which workers have different policies, as during a deployment:
kind    workers  releases  policy
charge        2  v1.2.4    delay 1m
charge        1  v1.2.3    delay 1h

worker c cannot read pauses, overrides and cancellations: permission denied
worker c cannot read per-task policy e0d34d2987c16f66, and does not run its tasks: unknown name
2 workers cannot apply the pause of shard:3, so its tasks still run there (b, c): not known
1 worker cannot apply the policy override for kind:charge, so "delay 1m" stays in effect there (b): too large
all 10 handlers of queue mails are busy: its tasks wait until a handler is free
no live worker handles kind thumbnail in queue images, where tasks wait
`
	if got != want || !f.attention() {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
}
