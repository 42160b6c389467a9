package ops_test

import (
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/ops"
)

// TestTextsOfConditions has those that the tables of other tests do not bring about.
func TestTextsOfConditions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	task := falldue.TaskInfo{ID: 7, Kind: "mail", Queue: "default", Attempts: 3, LastError: "no such address", Now: now}
	for _, c := range []struct {
		condition  ops.Condition
		name, text string
	}{
		{ops.WhyState{State: falldue.StateDead, Since: now.Add(-time.Hour)}, "state", `dead since 2026-12-11 13:02:00 UTC, 1h ago, after 3 attempts; the last error: no such address; "falldue retry" retries it`},
		{ops.WhyState{State: falldue.StateDone, Since: now}, "state", "done since 2026-12-11 14:02:00 UTC, now"},
		{ops.WhyMembers{Counts: flow.Counts{Done: 1234, Pending: 1}, WaitsFor: []int64{7}, OnDeath: flow.StaysBlocked}, "members", "it runs after 1,235 tasks: 1,234 done, 1 unfinished; waiting for task 7"},
		{ops.WhyMembers{Counts: flow.Counts{Done: 1, Dead: 1, Cancelled: 1}, Failed: []int64{7, 8}, OnDeath: flow.StaysBlocked}, "members", `it runs after 3 tasks: 1 done, 1 dead, 1 cancelled; dead or cancelled: tasks 7, 8; this task stays blocked until "falldue retry" has retried tasks 7, 8`},
		{ops.WhyMembers{Counts: flow.Counts{Pending: 1}, WaitsFor: []int64{7}, OnDeath: flow.IsCancelled}, "members", "it runs after 1 task: 1 unfinished; waiting for task 7; if one of them fails, this task is cancelled"},
		{ops.WhyClaim{Worker: "w", Lost: true, Until: now.Add(-time.Minute)}, "claim", "no worker runs it any more: the lease of worker w ended 2026-12-11 14:01:00 UTC, 1m ago; the worker sent no heartbeat within the last minute, so it has died or cannot reach the database"},
		{ops.WhyClaim{Worker: "w", Lost: true, Live: true, Until: now.Add(-time.Minute)}, "claim", "no worker runs it any more: the lease of worker w ended 2026-12-11 14:01:00 UTC, 1m ago; the worker sent a heartbeat within the last minute, so it was suspended or could not reach the database until then"},
		{ops.WhyAttempts{Attempts: 3, Most: 3}, "attempts", "3 of 3 used: none is left, and the task becomes dead when it falls due"},
		{ops.WhyAttempts{Attempts: 1, Most: 3}, "attempts", "1 of 3 used"},
		{ops.WhyPolicy{Key: "k", Err: errors.New("policy k is not in the policies table")}, "policy", "the per-task policy cannot be read, so no worker runs the task: policy k is not in the policies table"},
		{ops.WhyDue{Snoozed: true, Anchor: now.Add(time.Hour), Now: now, Rules: []ops.DueRule{{At: now.Add(time.Hour)}}}, "due", "it is snoozed until 2026-12-11 15:02:00 UTC; due in 1h, at 2026-12-11 15:02:00 UTC"},
		{ops.WhyDue{Attempts: 3, Failed: now, Jitter: 5 * time.Second, Now: now, Rules: []ops.DueRule{
			{Policy: "delay 1m", Delay: time.Minute, At: now.Add(time.Minute), Workers: []string{"a"}},
			{Policy: "delay 2m", Delay: 2 * time.Minute, At: now.Add(2 * time.Minute), Workers: []string{"b", "c"}},
		}}, "due", `attempt 3 failed at 2026-12-11 14:02:00 UTC, and its wait starts 5s later because of jitter; due in 1m, at 2026-12-11 14:03:00 UTC, after a delay of 1m under the policy "delay 1m" on a; due in 2m, at 2026-12-11 14:04:00 UTC, after a delay of 2m under the policy "delay 2m" on b c`},
		{ops.WhyDue{Attempts: 3, Failed: now, Now: now, Rules: []ops.DueRule{{Policy: "delay 1m", Delay: time.Minute, At: now.Add(time.Hour), From: now.Add(time.Hour)}}},
			"due", `attempt 3 failed at 2026-12-11 14:02:00 UTC; held until 2026-12-11 15:02:00 UTC, in 1h; then due, after a delay of 1m under the policy "delay 1m"`},
		{ops.WhyDue{Attempts: 3, Failed: now, Now: now, Rules: []ops.DueRule{{Policy: "delay 2h", Delay: 2 * time.Hour, At: now.Add(2 * time.Hour), From: now.Add(time.Hour)}}},
			"due", `attempt 3 failed at 2026-12-11 14:02:00 UTC; held until 2026-12-11 15:02:00 UTC, in 1h; then due in 2h, at 2026-12-11 16:02:00 UTC, after a delay of 2h under the policy "delay 2h"`},
		{ops.WhyDue{Attempts: 2, Anchor: now, Now: now}, "due", "its wait after 2 attempts started at 2026-12-11 14:02:00 UTC; its policy is unknown because no live worker handles its kind: set the policy with --policy"},
		{ops.WhyExpiry{At: now.Add(time.Minute), Own: true, Now: now}, "expiry", "its ExpireAt requires it to start by 2026-12-11 14:03:00 UTC, in 1m"},
		{ops.WhyExpiry{At: now.Add(-time.Minute), Now: now}, "expiry", "its policy required it to start by 2026-12-11 14:01:00 UTC, 1m ago: it is cancelled instead of run"},
		{ops.WhyPause{Pauses: []ops.Pause{{Subject: falldue.Subject{Kind: "mail"}, At: now.Add(-time.Hour), Until: now.Add(time.Hour), Note: falldue.Note{Who: "ann", Why: "closed"}}, {Subject: falldue.Subject{Queue: "default"}, At: now}}}, "pause", "kind:mail is paused by ann since 2026-12-11 13:02:00 UTC, 1h ago, until 2026-12-11 15:02:00 UTC, in 1h: closed; queue:default is paused since 2026-12-11 14:02:00 UTC, now, until it is resumed"},
		{ops.WhyWorker{Stopping: []string{"a"}, InQueue: []string{"b"}, OfKind: []string{"c"}}, "worker", "no live worker handles kind mail in queue default; shutting down: a; in its queue, without a handler of its kind: b; with a handler of its kind, in other queues: c"},
		{ops.WhyWorker{Workers: []string{"1", "2", "3", "4", "5", "6", "7"}}, "worker", "live workers of its queue that handle its kind: 1, 2, 3, 4, 5 and 2 more"},
		{ops.WhyHandlers{QueueHandlers: ops.QueueHandlers{Queue: "default", Running: 3, Concurrency: 3, Workers: []ops.WorkerHandlers{{"a", 1, 1, 3 * time.Second}, {"b", 2, 2, 12 * time.Second}}}, Every: 25 * time.Second, Over: 5 * time.Minute},
			"handlers", "all 3 handlers of queue default for its kind were busy at the last heartbeats of their workers, up to 12s ago: 1 of 1 on a, 2 of 2 on b; in the 5m before, these workers finished a run every 25s"},
		{ops.WhyHandlers{QueueHandlers: ops.QueueHandlers{Queue: "default", Running: 3, Concurrency: 3, Workers: []ops.WorkerHandlers{{"a", 1, 1, 3 * time.Second}, {"b", 2, 2, 12 * time.Second}}}, Every: 20 * time.Microsecond, Over: 5 * time.Minute},
			"handlers", "all 3 handlers of queue default for its kind were busy at the last heartbeats of their workers, up to 12s ago: 1 of 1 on a, 2 of 2 on b; in the 5m before, these workers finished 50,000 runs per second"},
		{ops.WhyHandlers{QueueHandlers: ops.QueueHandlers{Queue: "default", Running: 3, Concurrency: 10, Workers: []ops.WorkerHandlers{{"a", 3, 10, 3 * time.Second}}}},
			"handlers", "3 of 10 handlers of queue default for its kind were busy at the last heartbeats of their workers, up to 3s ago"},
		{ops.WhyLimit{Limit: "Rate(5, 1m0s)", Owner: "queue default", Taken: []int64{1, 2, 1}, Free: now.Add(time.Second)}, "limit", "Rate(5, 1m0s) of queue default, admits no more tasks; 3 permits taken by tasks 1, 2; the next permit in 1s, at 2026-12-11 14:02:01 UTC"},
		{ops.WhySequence{Next: 4, Runs: true}, "sequence", "task 4 comes before it, and is running"},
		{ops.WhySequence{Next: 4, Halted: true}, "sequence", "task 4 comes before it, is dead, and halts the sequence: retry or delete task 4"},
		{ops.WhySequence{Next: 4}, "sequence", "task 4 comes before it, and is waiting"},
		{ops.WhySequence{Next: 4, NextDue: now.Add(time.Hour)}, "sequence", "task 4 comes before it, and is waiting: task 4 is due in 1h, at 2026-12-11 15:02:00 UTC, and this task can run once task 4 is done"},
		{ops.WhySequence{Next: 4, NextDue: now.Add(-time.Hour)}, "sequence", `task 4 comes before it, and is waiting: task 4 has been due for 1h; see "falldue why 4"`},
		{ops.WhySequence{Next: 4, NextDue: now, NextPaused: true}, "sequence", "task 4 comes before it, and is waiting: task 4 is paused"},
		{ops.WhySequence{}, "sequence", "it is the next task of its key"},
		{ops.WhyLock{Locked: true, Known: true}, "lock", "a transaction has locked its row, and workers skip it"},
		{ops.WhyLock{}, "lock", "it is unknown whether a transaction holds its row lock: the server cannot tell, or this user cannot lock rows"},
		{ops.WhyRank{Ahead: 10_000, More: true}, "rank", "more than 10,000 tasks before it in its lane (tasks with the same delay)"},
		{ops.WhyRank{Ahead: 1234}, "rank", "1,234 tasks before it in its lane (tasks with the same delay)"},
	} {
		if name, text := c.condition.Name(), c.condition.Describe(task); name != c.name || text != c.text {
			t.Errorf("%+v is %s: %s\nwant %s: %s", c.condition, name, text, c.name, c.text)
		}
	}
}
