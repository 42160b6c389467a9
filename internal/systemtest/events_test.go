package systemtest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// TestFailuresAreLogged: each kind of failure has one line in the log, with its level,
// its reason and the keys by which it is found, and successes have none.
func TestFailuresAreLogged(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	var log lockedBuilder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	newQueue := func(policy backoff.Policy) (q *falldue.Queue, kind, slow falldue.Kind[string]) {
		q, err := falldue.New(db, falldue.Config{Logger: logger, DoneRetention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind = falldue.NewKind[string]("k", falldue.KindConfig{Policy: policy})
		slow = falldue.NewKind[string]("slow", falldue.KindConfig{Policy: policy, Timeout: 10 * time.Millisecond})
		handler := func(ctx context.Context, task falldue.Task[string]) error {
			switch {
			case task.Args == "success":
				return nil
			case task.Args == "discarded":
				return falldue.Discard(errors.New("gone"))
			case task.Args == "panics" && task.Attempt == 1:
				panic("aargh")
			case task.Args == "late" && task.Attempt == 1:
				<-ctx.Done()
			}
			return errors.New("flaky " + task.Args)
		}
		falldue.Handle(q, kind, handler)
		falldue.Handle(q, slow, handler)
		return q, kind, slow
	}
	q, kind, slow := newQueue(backoff.ParseDeferred("delay if(n < 2, 0, 1h); attempts 5"))
	ids := map[string]int64{}
	for _, args := range []string{"success", "discarded", "panics", "late", "fails", "own"} {
		options := falldue.EnqueueOptions{}
		if args == "own" {
			options.MaxAttempts = 2
		}
		k := kind
		if args == "late" {
			k = slow
		}
		receipt, err := k.Enqueue(t.Context(), q, args, options)
		if err != nil {
			t.Fatal(err)
		}
		ids[args] = receipt.ID
	}
	stop := runUntil(t, q)
	for args, id := range ids {
		waitFor(t, args, func() bool {
			i := info(t, q, id)
			return i.ClaimedBy == "" && (i.State != falldue.StateOpen || i.Attempts == 2)
		})
	}
	stop()
	strict, _, _ := newQueue(backoff.Constant(0).WithMaxAttempts(1))
	stop = runUntil(t, strict)
	waitFor(t, "the lower limit", func() bool {
		return info(t, q, ids["fails"]).State == falldue.StateDead && info(t, q, ids["late"]).State == falldue.StateDead && info(t, q, ids["panics"]).State == falldue.StateDead
	})
	stop()
	if i := info(t, q, ids["fails"]); i.LastError != "flaky fails" {
		t.Errorf("the last error of a task beyond a limit is %q", i.LastError)
	}
	attempts, err := q.Attempts(t.Context(), ids["fails"])
	if want := "2 attempts have failed, and the policy of its kind allows 1 now"; err != nil || len(attempts) != 3 || attempts[2].Error != want {
		t.Errorf("the attempts of a task beyond a limit are %+v (error %v), want %q at the end", attempts, err, want)
	}
	for _, want := range []string{
		`level=ERROR msg="falldue: a task is dead" task=2 kind=k queue=default attempt=1 why="its handler discarded it" error=gone`,
		`level=ERROR msg="falldue: a handler panicked; the task runs again" task=3 kind=k queue=default attempt=1 error="panic: aargh" stack=`,
		`level=WARN msg="falldue: a handler timed out; the task runs again" task=4 kind=slow queue=default attempt=1 error=`,
		`level=DEBUG msg="falldue: an attempt failed; the task runs again" task=5 kind=k queue=default attempt=2 error="flaky fails"`,
		`level=ERROR msg="falldue: a task is dead" task=6 kind=k queue=default attempt=2 why="the task's MaxAttempts allows 2 attempts" error="flaky own"`,
		`level=ERROR msg="falldue: tasks are dead: they have used more attempts than are allowed now" queue=default kind=k count=2 limit="the policy of its kind" allowed=1`,
		`level=ERROR msg="falldue: tasks are dead: they have used more attempts than are allowed now" queue=default kind=slow count=1 limit="the policy of its kind" allowed=1`,
	} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("the log has %d lines with\n%s", n, want)
		}
	}
	if strings.Contains(log.String(), "task=1 ") || t.Failed() {
		t.Errorf("the log is\n%s", log.String())
	}
}

// TestShutdownNamesWhatItWaitsFor: a worker that stops logs how many handlers run, and after its
// shutdown timeout the tasks and their kinds.
func TestShutdownNamesWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	var log lockedBuilder
	q, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{
		Logger: slog.New(slog.NewTextHandler(&log, nil)), ShutdownTimeout: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind, started, release := falldue.NewKind[int]("stubborn", falldue.KindConfig{}), make(chan struct{}), make(chan struct{})
	falldue.Handle(q, kind, func(context.Context, falldue.Task[int]) error {
		close(started)
		<-release
		return nil
	})
	if _, err := kind.Enqueue(t.Context(), q, 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	<-started
	cancel()
	waitFor(t, "the log", func() bool {
		return strings.Contains(log.String(), "have not returned\" count=1 tasks=[1] kinds=[stubborn]")
	})
	if !strings.Contains(log.String(), "the worker stops and waits for its handlers\" count=1 timeout=0s") {
		t.Errorf("the log is\n%s", log.String())
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWarningOfAQueueThatIsNotServed: a worker handles a kind and does not work on the kind's
// queue. It logs that, and nothing about tasks: tasks of the kind in its own queue run.
func TestWarningOfAQueueThatIsNotServed(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	db := testdb.Open(t, testdb.SQLite)
	migrated(t, db)
	q, err := falldue.New(db, falldue.Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	kind := falldue.NewKind[int]("resize", falldue.KindConfig{Queue: "images"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ran := false
	falldue.Handle(q, kind, func(context.Context, falldue.Task[int]) error {
		ran = true
		stop()
		return nil
	})
	if _, err := kind.Enqueue(ctx, q, 1, falldue.EnqueueOptions{Queue: falldue.DefaultQueue}); err != nil {
		t.Fatal(err)
	}
	if err := q.Run(ctx); err != nil || !ran {
		t.Errorf("the task in the worker's queue ran: %v (error %v)", ran, err)
	}
	const want = `level=WARN msg="falldue: this worker handles a kind, but does not work on its queue" kind=resize queue=images`
	if !strings.Contains(log.String(), want) || strings.Contains(log.String(), "wait") {
		t.Errorf("it logged\n%s", log.String())
	}
}
