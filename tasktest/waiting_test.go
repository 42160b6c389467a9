package tasktest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// TestRunOneSaysWhatWaits: a test in which no task is due ends with the reason.
func TestRunOneSaysWhatWaits(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q := newQueue(t, testdb.Open(t, engine), falldue.Config{Queues: map[string]falldue.QueueConfig{"default": {}, "low": {}}})
		kind := falldue.NewKind[string]("mail", falldue.KindConfig{Policy: backoff.Constant(time.Hour)})
		paused, other := falldue.NewKind[string]("paused", falldue.KindConfig{}), falldue.NewKind[string]("other", falldue.KindConfig{})
		if text := failing(t, func(t testing.TB) { tasktest.RunOne(t, q) }); !strings.Contains(text, "the queue has no handlers: call Handle before RunOne") {
			t.Errorf("without a handler: %s", text)
		}
		falldue.Handle(q, paused, func(context.Context, falldue.Task[string]) error { return nil })
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
			if task.Args == "snooze" {
				return falldue.Snooze(time.Hour)
			}
			return errDown
		})
		says := func() string { return failing(t, func(t testing.TB) { tasktest.RunOne(t, q) }) }
		want := `tasktest: no task is due that would run; RunOne looks in the queues ["default" "low"] for the kinds ["mail" "paused"], and none waits or runs`
		if text := strings.TrimSpace(says()); text != want {
			t.Errorf("without a task: %s", text)
		}
		failed, snoozed := enqueue(t, q, kind, "fail"), enqueue(t, q, kind, "snooze")
		ids, err := flow.Chain(kind.Params("later", falldue.EnqueueOptions{Delay: time.Hour}), kind.Params("after")).Enqueue(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		held, unknown := enqueue(t, q, paused, ""), enqueue(t, q, other, "")
		elsewhere := enqueue(t, q, kind, "", falldue.EnqueueOptions{Queue: "high"})
		if err := q.Pause(t.Context(), falldue.Subject{Kind: "paused"}); err != nil {
			t.Fatal(err)
		}
		tasktest.Drain(t, q)
		text := says()
		for id, line := range map[int64]string{
			failed:    `of kind "mail" in queue "default" is backing_off after attempt 1: the service is down`,
			snoozed:   `of kind "mail" in queue "default" is snoozed for another `,
			ids[0]:    `of kind "mail" in queue "default" is scheduled for another `,
			ids[1]:    `of kind "mail" in queue "default" is blocked` + "\n",
			held:      `of kind "paused" in queue "default" is paused` + "\n",
			unknown:   `of kind "other" in queue "default" is due; its kind has no handler`,
			elsewhere: `of kind "mail" in queue "high" is due; the queue is not in Config.Queues`,
		} {
			if !strings.Contains(text, fmt.Sprintf("\n\ttask %d %s", id, line)) {
				t.Errorf("task %d is not said to be %q in\n%s", id, line, text)
			}
		}
		for range 10 {
			enqueue(t, q, other, "")
		}
		if text := says(); strings.Count(text, "\n\ttask ") != 10 || !strings.HasSuffix(text, "\n\tand more\n") {
			t.Errorf("of 17 tasks it says\n%s", text)
		}
	})
}

// TestDrainWithoutHandlers: a due task ends the test, since nothing would ever run it. A task that is due later does not.
func TestDrainWithoutHandlers(t *testing.T) {
	q := newQueue(t, testdb.Open(t, testdb.SQLite), falldue.Config{})
	kind := falldue.NewKind[string]("mail", falldue.KindConfig{})
	enqueue(t, q, kind, "later", falldue.EnqueueOptions{Delay: time.Hour})
	if ran := tasktest.Drain(t, q); len(ran) > 0 {
		t.Errorf("Drain without handlers ran %+v", ran)
	}
	enqueue(t, q, kind, "now")
	drain := func(t testing.TB) { tasktest.Drain(t, q) }
	if text, want := failing(t, drain), `tasktest: task 2 of kind "mail" is due, but the queue has no handlers: call Handle before Drain`+"\n"; text != want {
		t.Errorf("Drain without handlers says %q, want %q", text, want)
	}
	falldue.Handle(q, falldue.NewKind[string]("other", falldue.KindConfig{}), func(context.Context, falldue.Task[string]) error { return nil })
	if text := failing(t, drain); text != "" {
		t.Errorf("with a handler of another kind Drain says %q", text)
	}
}

// TestANilQueueEndsTheTest: with a sentence.
func TestANilQueueEndsTheTest(t *testing.T) {
	db := testdb.Open(t, testdb.SQLite)
	clock, kind := tasktest.NewClock(t, db), falldue.NewKind[string]("mail", falldue.KindConfig{})
	newQueue(t, db, falldue.Config{})
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	for name, use := range map[string]func(testing.TB){
		"RunOne":                func(t testing.TB) { tasktest.RunOne(t, nil) },
		"Drain":                 func(t testing.TB) { tasktest.Drain(t, nil) },
		"Advance":               func(t testing.TB) { clock.Advance(t, nil, time.Hour) },
		"All":                   func(t testing.TB) { tasktest.All(t, nil, kind) },
		"AllTx":                 func(t testing.TB) { tasktest.AllTx(t, nil, tx, kind) },
		"RequireEnqueued":       func(t testing.TB) { tasktest.RequireEnqueued(t, nil, kind, "") },
		"RequireEnqueuedTx":     func(t testing.TB) { tasktest.RequireEnqueuedTx(t, nil, tx, kind, "") },
		"RequireNoneEnqueued":   func(t testing.TB) { tasktest.RequireNoneEnqueued(t, nil, kind) },
		"RequireNoneEnqueuedTx": func(t testing.TB) { tasktest.RequireNoneEnqueuedTx(t, nil, tx, kind) },
	} {
		if text := failing(t, use); text != "tasktest: the *falldue.Queue is nil: pass a queue that falldue.New has returned\n" {
			t.Errorf("%s says %q", name, text)
		}
	}
}
