package tasktest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

func TestNewTask(t *testing.T) {
	task, record := tasktest.NewTask(mailArgs{To: "ann@example.org"})
	if err := task.SetResult(map[string]int{"sent": 1}); err != nil {
		t.Error(err)
	}
	if err := task.SetResult(string(make([]byte, 2<<20))); !errors.Is(err, falldue.ErrInvalid) {
		t.Errorf("a result of 2 MiB: %v", err)
	}
	if got := string(record.Result()); got != `{"sent":1}` {
		t.Errorf("the result is %s", got)
	}
	task.Progress(0.5, "half")
	task.Progress(1, "all")
	if got := record.Progress(); !slices.Equal(got, []tasktest.Progress{{Fraction: 0.5, Message: "half"}, {Fraction: 1, Message: "all"}}) {
		t.Errorf("reported is %+v", got)
	}
	if record.DoneTx() {
		t.Error("done before DoneTx")
	}
	record.LoseLease()
	if err := task.DoneTx(t.Context(), &sql.Tx{}); !errors.Is(err, falldue.ErrLeaseLost) || record.DoneTx() {
		t.Errorf("after the lease was lost: %v", err)
	}
	task, record = tasktest.NewTask(mailArgs{})
	if err := task.DoneTx(t.Context(), nil); !errors.Is(err, falldue.ErrInvalid) || record.DoneTx() {
		t.Errorf("without a transaction: %v", err)
	}
	for _, err := range []error{task.SetResult("first"), task.DoneTx(t.Context(), &sql.Tx{}), task.SetResult("too late")} {
		if err != nil {
			t.Error(err)
		}
	}
	if got := string(record.Result()); got != `"first"` {
		t.Errorf("the result after DoneTx is %s", got)
	}
	literal := falldue.Task[mailArgs]{}
	literal.Progress(1, "of no run")
	for _, err := range []error{literal.DoneTx(t.Context(), nil), literal.SetResult(1)} {
		if !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), "tasktest.NewTask") {
			t.Errorf("a task without a run: %v", err)
		}
	}
}

// TestNewTaskOf: a task of a kind takes the results that a worker would take.
func TestNewTaskOf(t *testing.T) {
	kept := falldue.NewKind[int]("kept", falldue.KindConfig{DoneRetention: time.Hour, Queue: "reports", Priority: 7, Policy: backoff.Constant(0).WithMaxAttempts(3)})
	plain := falldue.NewKind[int]("plain", falldue.KindConfig{})
	never := falldue.NewKind[int]("never", falldue.KindConfig{DoneRetention: falldue.DeleteImmediately})
	for _, c := range []struct {
		kind falldue.Kind[int]
		cfg  falldue.Config
		want string // in the error of SetResult; none for ""
	}{
		{kept, falldue.Config{}, ""},
		{kept, falldue.Config{MaxPayload: 3}, "result"},
		{plain, falldue.Config{DoneRetention: time.Hour}, ""},
		{plain, falldue.Config{}, "result of kind \"plain\": done tasks of the kind are deleted immediately"},
		{never, falldue.Config{DoneRetention: time.Hour}, "result of kind \"never\": done tasks of the kind are deleted immediately"},
	} {
		task, record := tasktest.NewTaskOf(c.kind, 42, c.cfg)
		err := task.SetResult("done")
		if c.want == "" && (err != nil || string(record.Result()) != `"done"`) {
			t.Errorf("%s with %+v: the result is %s (error %v)", task.Kind, c.cfg, record.Result(), err)
		}
		if c.want != "" && (!errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), c.want) || record.Result() != nil) {
			t.Errorf("%s with %+v: the result is %s, error %v; want one with %q", task.Kind, c.cfg, record.Result(), err, c.want)
		}
	}

	task, _ := tasktest.NewTaskOf(kept, 42, falldue.Config{})
	if task.Args != 42 || task.Kind != "kept" || task.Queue != "reports" || task.Priority != 7 || task.MaxAttempts != 3 || task.ID != 1 || task.Attempt != 1 || task.Fence != 1 {
		t.Errorf("the task is %+v", task.RunInfo)
	}
	task, _ = tasktest.NewTaskOf(plain, 42, falldue.Config{DefaultPolicy: backoff.Constant(0).WithMaxAttempts(9)})
	if task.Queue != falldue.DefaultQueue || task.MaxAttempts != 9 {
		t.Errorf("a task of a plain kind is %+v", task.RunInfo)
	}
}

// orderArgs are arguments of which JSON does not keep everything.
type orderArgs struct {
	Customer string
	Client   any `json:"-"`
	paid     bool
}

// TestTasksByHandAreLikeStoredOnes: handlers get them with the key, the arguments and the
// progress that they have when a database has stored them.
func TestTasksByHandAreLikeStoredOnes(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, customer := range []string{"ada", strings.Repeat("long", 50), ""} {
			kind := falldue.NewKind[orderArgs]("orders", falldue.KindConfig{DeadRetention: time.Hour}).KeyedBy(func(args orderArgs) string {
				if args.Customer == "" || !args.paid {
					return ""
				}
				return "customer:" + args.Customer
			})
			args := orderArgs{Customer: customer, Client: 42, paid: true}
			q := newQueue(t, testdb.Open(t, engine), falldue.Config{})
			var run falldue.Task[orderArgs]
			handle := func(_ context.Context, task falldue.Task[orderArgs]) error {
				run = task
				task.Progress(7, strings.Repeat("x", 20<<10))
				return falldue.Discard(errDown)
			}
			falldue.Handle(q, kind, handle)
			id := enqueue(t, q, kind, args)
			tasktest.RunOne(t, q)
			want := run
			progress, err := q.Progress(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			task, record := tasktest.NewTaskOf(kind, args, falldue.Config{})
			if err := handle(t.Context(), task); err == nil {
				t.Error("the handler returned no error")
			}
			if task.Key != want.Key || task.Args != want.Args {
				t.Errorf("the task by hand has the key %q and %+v, the one of the database %q and %+v", task.Key, task.Args, want.Key, want.Args)
			}
			if list := record.Progress(); len(list) != 1 || list[0] != (tasktest.Progress{Fraction: progress.Fraction, Message: progress.Message}) {
				t.Errorf("the task by hand has reported %.60v, the one of the database %.60v", list, progress)
			}
			if task, _ := tasktest.NewTask(args); task.Args != want.Args {
				t.Errorf("the task of no kind has %+v, the one of the database %+v", task.Args, want.Args)
			}
		}
	})
}

// TestArgumentsThatCannotBeEncoded end a test before a handler has them.
func TestArgumentsThatCannotBeEncoded(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, `kind "test"`) || !strings.Contains(text, "chan int") {
			t.Errorf("the panic is %s", text)
		}
	}()
	tasktest.NewTask(make(chan int))
}

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		err  error
		want falldue.Outcome
		wait time.Duration
	}{
		{nil, falldue.OutcomeDone, 0},
		{errDown, falldue.OutcomeRetried, 0},
		{falldue.Discard(errDown), falldue.OutcomeDiscarded, 0},
		{fmt.Errorf("send: %w", falldue.Snooze(time.Minute)), falldue.OutcomeSnoozed, time.Minute},
		{falldue.Again(time.Minute), falldue.OutcomeRepeated, time.Minute},
		{falldue.RetryAfter(time.Hour, errDown), falldue.OutcomeRetriedAfter, time.Hour},
	} {
		if got, wait := tasktest.Asked(c.err); got != c.want || wait != c.wait {
			t.Errorf("%v asks for %s and %v, want %s and %v", c.err, got, wait, c.want, c.wait)
		}
	}
}
